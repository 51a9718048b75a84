// The controller's API: requests with the session's token, and refusals as the controller says them.

import type { components } from "../api/schema";

type Schemas = components["schemas"];
export type Session = Schemas["SessionView"];
export type Slice = Schemas["SliceView"];
export type Plan = Schemas["PlanView"];
export type Planned = Schemas["Planned"];
export type Fault = Schemas["Fault"];
export type Declaration = Schemas["Declaration"];
export type Declares = Schemas["Declares"];
export type Sites = Schemas["SitesView"];
export type Event = Schemas["Event"];
export type News = Schemas["News"];
export type Switch = Schemas["SwitchView"];
export type Port = Schemas["PortView"];
export type Flow = Schemas["FlowLine"];
export type Group = Schemas["GroupView"];
export type Meter = Schemas["MeterView"];
export type Mac = Schemas["MacView"];
export type Way = Schemas["SliceWhy"];
export type Guest = Schemas["GuestView"];
export type Node = Schemas["DomainNodeView"];
export type Deviation = Schemas["Deviation"];
export type JoinToken = Schemas["JoinTokenView"];
export type NewToken = Schemas["NewToken"];
export type User = Schemas["UserView"];
export type Role = Schemas["Role"];
export type Span = Schemas["CalendarEntry"];
export type AuditLine = Schemas["AuditLine"];

/** What the controller refused, or that it did not answer. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly faults: Fault[],
  ) {
    super(faults[0]?.cause ?? "");
  }
}

let csrf = "";
let asked = Date.now();
let ended = () => {};

/** Uses a session from now on; `over` is called when the controller says that it has ended. */
export function use(session: Session, over: () => void) {
  csrf = session.csrf;
  ended = over;
}

/** Milliseconds since the last request. */
export const silentFor = () => Date.now() - asked;

async function ask<T>(method: string, path: string, body?: unknown, more: Record<string, string> = {}, isQuiet = false): Promise<T> {
  if (!isQuiet) asked = Date.now();
  const headers: Record<string, string> = { ...more };
  if (method !== "GET") headers["X-CSRF-Token"] = csrf;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const request: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store", redirect: "error" };
  if (body !== undefined) request.body = JSON.stringify(body);
  let answer: Response;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Refused(0, []);
  }
  const said = await answer.json().catch(() => null);
  if (answer.ok) return said as T;
  if (answer.status === 401 && path !== "/v1/session") ended();
  const faults: Fault[] = said?.error ? [said.error, ...(said.others ?? [])] : [];
  throw new Refused(answer.status, faults);
}

/** Rules that a page shows at a time. */
export const RULES = 200;

const at = (slice: string) => `/v1/slices/${slice.split("/").map(encodeURIComponent).join("/")}`;
const guestAt = (slice: string, name: string) => `${at(slice)}/guests/${encodeURIComponent(name)}`;
const switchAt = (slice: string, name: string) => `${at(slice)}/switches/${encodeURIComponent(name)}`;

export const api = {
  session: () => ask<Session>("GET", "/v1/session"),
  signIn: (user: string, password: string) => ask<Session>("POST", "/v1/session", { user, password }),
  signOut: () => ask<null>("DELETE", "/v1/session"),
  sites: () => ask<Sites>("GET", "/v1/sites"),
  slices: () => ask<Slice[]>("GET", "/v1/slices"),
  slice: (slice: string) => ask<Slice>("GET", at(slice)),
  history: (slice: string) => ask<[number, Declaration][]>("GET", `${at(slice)}/history`),
  read: (declared: Declaration) => ask<Declares>("POST", "/v1/read", declared),
  plan: (slice: string, declared: Declaration) => ask<Plan>("POST", `${at(slice)}/plan`, declared),
  /** Applies that plan and no other, if the slice is still at that revision (null: is not there yet). */
  apply: (slice: string, declared: Declaration, plan: string, revision: number | null) =>
    ask<Plan>(
      "PUT",
      `${at(slice)}?plan=${encodeURIComponent(plan)}`,
      declared,
      revision === null ? { "If-None-Match": "*" } : { "If-Match": `"${revision}"` },
    ),
  /** What would become of a packet that comes in there; nothing is sent. */
  why: (slice: string, name: string, flow: string) => ask<Way>("POST", `${switchAt(slice, name)}/why`, { flow }),
  nodes: () => ask<Node[]>("GET", "/v1/nodes"),
  deviations: () => ask<Deviation[]>("GET", "/v1/deviations?deep=true"),
  forget: (node: string) => ask<null>("POST", `/v1/nodes/${encodeURIComponent(node)}/forget`),
  tokens: () => ask<JoinToken[]>("GET", "/v1/tokens"),
  addToken: (nodes: string[], for_s: number) => ask<NewToken>("POST", "/v1/tokens", { nodes, for_s }),
  removeToken: (id: string) => ask<null>("DELETE", `/v1/tokens/${encodeURIComponent(id)}`),
  users: () => ask<User[]>("GET", "/v1/users"),
  putUser: (name: string, role: Role, tenant: string | null, for_s: number) =>
    ask<NewToken>("PUT", `/v1/users/${encodeURIComponent(name)}`, { role, tenant, for_s }),
  putPassword: (name: string, password: string) => ask<null>("PUT", `/v1/users/${encodeURIComponent(name)}/password`, { password }),
  removeUser: (name: string) => ask<null>("DELETE", `/v1/users/${encodeURIComponent(name)}`),
  calendar: () => ask<Span[]>("GET", "/v1/calendar"),
  audit: () => ask<AuditLine[]>("GET", "/v1/audit"),
  remove: (slice: string) => ask<Plan>("DELETE", at(slice)),
};

/** What a page asks again and again by itself: it does not keep a session from ending. */
const look = <T>(path: string) => ask<T>("GET", path, undefined, {}, true);

export const watch = {
  switch: (slice: string, name: string) => look<Switch>(switchAt(slice, name)),
  ports: (slice: string, name: string) => look<Port[]>(`${switchAt(slice, name)}/ports`),
  macs: (slice: string, name: string) => look<Mac[]>(`${switchAt(slice, name)}/macs`),
  flows: (slice: string, name: string, filter: string) =>
    look<{ flows: Flow[] }>(`${switchAt(slice, name)}/flows?limit=${RULES}&filter=${encodeURIComponent(filter)}`),
  groups: (slice: string, name: string) => look<Group[]>(`${switchAt(slice, name)}/groups`),
  meters: (slice: string, name: string) => look<Meter[]>(`${switchAt(slice, name)}/meters`),
  guest: (slice: string, name: string) => look<Guest>(guestAt(slice, name)),
  log: (slice: string, name: string) => look<{ text: string }>(`${guestAt(slice, name)}/log`),
};

/** Where a shell in a guest is, for a terminal of that size. */
export const consoleAt = (slice: string, name: string, { rows, columns }: { rows: number; columns: number }) =>
  `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${guestAt(slice, name)}/console?rows=${rows}&columns=${columns}`;
