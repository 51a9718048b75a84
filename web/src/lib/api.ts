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

async function ask<T>(method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<T> {
  asked = Date.now();
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

const at = (slice: string) => `/v1/slices/${slice.split("/").map(encodeURIComponent).join("/")}`;

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
  remove: (slice: string) => ask<Plan>("DELETE", at(slice)),
};
