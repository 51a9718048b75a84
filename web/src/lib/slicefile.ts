// A slice's file and its drawing: what the text says, and texts that say more. Comments, order and form of the rest stay as they are.

import { Document, isMap, parseDocument, visit, YAMLMap } from "yaml";

export interface Thing {
  kind: "switch" | "guest" | "external";
  name: string;
  site: string;
  at: { x: number; y: number } | null;
  addresses: string[];
}

export interface Line {
  kind: "link" | "wire";
  name: string;
  /** Names of what it joins. */
  ends: [string, string];
  /** As they are written. */
  written: [string, string];
  rate: string | null;
  mtu: string | null;
  maxDelay: string | null;
}

export interface Drawing {
  key: string | null;
  until: string | null;
  things: Thing[];
  lines: Line[];
  errors: { line: number; text: string }[];
}

type Table = Record<string, unknown>;

const table = (value: unknown): Table => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Table) : {});
const text = (value: unknown): string | null => (typeof value === "string" || typeof value === "number" ? String(value) : null);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const owner = (end: string) => end.split(":")[0] ?? "";

function position(labels: unknown): Thing["at"] {
  const [x, y] = [Number(table(labels).x ?? NaN), Number(table(labels).y ?? NaN)];
  return Number.isFinite(x) && Number.isFinite(y) ? { x, y } : null;
}

/** What a text says, as far as it can be drawn. What is wrong with it beyond its form the controller says. */
export function read(source: string): Drawing {
  const document = parseDocument(source, { version: "1.2", schema: "failsafe", logLevel: "silent" });
  const errors = document.errors.map((error) => ({ line: error.linePos?.[0].line ?? 1, text: error.message.split("\n")[0] ?? "" }));
  const none: Drawing = { key: null, until: null, things: [], lines: [], errors };
  let file: Table;
  try {
    file = table(document.toJS({ maxAliasCount: 100 }));
  } catch (error) {
    return { ...none, errors: [...errors, { line: 1, text: String(error) }] };
  }
  const [tenant, name] = [text(file.tenant), text(file.name)];
  const things: Thing[] = [];
  const lines: Line[] = [];
  const defaults = table(table(file.defaults).link);
  for (const [name, it] of Object.entries(table(file.switches))) {
    things.push({ kind: "switch", name, site: text(table(it).site) ?? "", at: position(table(it).labels), addresses: [] });
  }
  for (const [name, it] of Object.entries(table(file.guests))) {
    const addresses: string[] = [];
    for (const [port, said] of Object.entries(table(table(it).ports))) {
      addresses.push(...list(table(said).addresses).map(String));
      const to = text(table(said).to);
      if (to !== null) {
        const written: [string, string] = [`${name}:${port}`, to];
        lines.push({ kind: "wire", name: `${name}.${port}`, ends: [name, owner(to)], written, rate: null, mtu: null, maxDelay: null });
      }
    }
    things.push({ kind: "guest", name, site: text(table(it).site) ?? "", at: position(table(it).labels), addresses });
  }
  for (const [name, it] of Object.entries(table(file.externals))) {
    const to = text(table(it).to) ?? "";
    things.push({ kind: "external", name, site: "", at: null, addresses: [] });
    const rate = text(table(it).rate);
    lines.push({ kind: "wire", name: `_out.${name}`, ends: [name, owner(to)], written: [name, to], rate, mtu: null, maxDelay: null });
  }
  for (const [name, it] of Object.entries(table(file.links))) {
    const said = table(it);
    const [a, b] = list(said.between).map(String);
    if (a === undefined || b === undefined) continue;
    const or = (key: string) => text(said[key]) ?? text(defaults[key]);
    lines.push({ kind: "link", name, ends: [owner(a), owner(b)], written: [a, b], rate: or("rate"), mtu: or("mtu"), maxDelay: text(said.max_delay) });
  }
  const key = tenant !== null && name !== null ? `${tenant}/${name}` : null;
  return { key, until: text(file.until), things, lines, errors };
}

/** The text after a change of its document; the same text if it cannot be read. */
function edited(source: string, change: (document: Document) => void): string {
  const document = parseDocument(source, { version: "1.2", logLevel: "silent" });
  if (document.errors.length > 0 || !isMap(document.contents)) return source;
  change(document);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** A table in one line, as the examples write it. */
function inLine(document: Document, value: unknown): YAMLMap {
  const node = document.createNode(value) as YAMLMap;
  node.flow = true;
  visit(node, {
    Collection: (_, inner) => { inner.flow = true; },
    // Ends are quoted, as in the examples: to an older YAML `1:2` is a number.
    Scalar: (_, scalar) => { if (typeof scalar.value === "string" && scalar.value.includes(":")) scalar.type = "QUOTE_DOUBLE"; },
  });
  return node;
}

/** Puts one more thing into a table of the file, which is made if it is not there. */
function put(document: Document, under: string, name: string, value: unknown) {
  const there = document.get(under);
  if (!isMap(there) || there.items.length === 0) document.set(under, new YAMLMap());
  document.setIn([under, name], inLine(document, value));
}

/** The first of s1, s2, … that nothing is called. */
export function freeName(drawing: Drawing, letter: string): string {
  const taken = new Set([...drawing.things, ...drawing.lines].map((it) => it.name));
  for (let number = 1; ; number += 1) if (!taken.has(`${letter}${number}`)) return `${letter}${number}`;
}

/** The lowest number of a switch's ports that nothing is at. */
export function freePort(drawing: Drawing, name: string): number {
  const ends = drawing.lines.flatMap((line) => line.written).filter((end) => owner(end) === name);
  const taken = new Set(ends.map((end) => Number(end.split(":")[1])));
  for (let number = 1; ; number += 1) if (!taken.has(number)) return number;
}

const labels = (x: number, y: number) => ({ x: String(Math.round(x)), y: String(Math.round(y)) });

export function addSwitch(source: string, name: string, site: string, x: number, y: number): string {
  return edited(source, (document) => put(document, "switches", name, { site, labels: labels(x, y) }));
}

export function addGuest(source: string, name: string, site: string, x: number, y: number): string {
  return edited(source, (document) => put(document, "guests", name, { kind: "process", site, labels: labels(x, y) }));
}

/** Joins two things; null where they cannot be joined. A guest gets one more port for it. */
export function addLink(source: string, from: string, to: string): string | null {
  const drawing = read(source);
  const find = (name: string) => drawing.things.find((thing) => thing.name === name);
  const [a, b] = [find(from), find(to)];
  if (!a || !b || a === b) return null;
  if (a.kind === "switch" && b.kind === "switch") {
    const between = [`${from}:${freePort(drawing, from)}`, `${to}:${freePort(drawing, to)}`];
    return edited(source, (document) => put(document, "links", freeName(drawing, "l"), { between }));
  }
  const guest = [a, b].find((end) => end.kind === "guest");
  const bridge = [a, b].find((end) => end.kind === "switch");
  if (!guest || !bridge) return null;
  const end = `${bridge.name}:${freePort(drawing, bridge.name)}`;
  return edited(source, (document) => {
    const path = ["guests", guest.name, "ports"];
    const ports = document.getIn(path);
    let number = 0;
    while (isMap(ports) && ports.has(`eth${number}`)) number += 1;
    if (!isMap(ports)) document.setIn(path, inLine(document, {}));
    document.setIn([...path, `eth${number}`], inLine(document, { to: end }));
  });
}

export function move(source: string, thing: Thing, x: number, y: number): string {
  const under = thing.kind === "switch" ? "switches" : "guests";
  return edited(source, (document) => {
    const path = [under, thing.name, "labels"];
    const { x: left, y: top } = labels(x, y);
    if (!isMap(document.getIn(path))) document.setIn(path, inLine(document, {}));
    document.setIn([...path, "x"], left);
    document.setIn([...path, "y"], top);
  });
}

/** Takes a thing or line out, and with a thing all that is joined to it. */
export function remove(source: string, kind: string, name: string): string {
  const drawing = read(source);
  return edited(source, (document) => {
    const takeLine = (line: Line) => {
      if (line.kind === "link") document.deleteIn(["links", line.name]);
      else if (line.name.startsWith("_out.")) document.deleteIn(["externals", line.name.slice(5)]);
      else document.deleteIn(["guests", line.ends[0], "ports", line.name.slice(line.ends[0].length + 1)]);
    };
    if (kind === "link" || kind === "wire") {
      drawing.lines.filter((line) => line.kind === kind && line.name === name).forEach(takeLine);
      return;
    }
    drawing.lines.filter((line) => line.ends.includes(name)).forEach(takeLine);
    document.deleteIn([kind === "switch" ? "switches" : kind === "guest" ? "guests" : "externals", name]);
  });
}

/** A file to begin with. */
export function template(tenant: string, name: string, sites: string[], shape: "line" | "empty"): string {
  const head = `suiro: slice/1\nname: ${name}\ntenant: ${tenant}\ndefaults:\n  switch: {fail_mode: standalone}\n`;
  if (shape === "empty") return head + "switches: {}\nguests: {}\nlinks: {}\n";
  const used = sites.slice(0, 3);
  const rows = (row: (site: string, at: number) => string) => used.map(row).join("");
  const x = (at: number) => 120 + 200 * at;
  const switches = rows((site, at) => `  s${at + 1}: {site: ${site}, labels: {x: "${x(at)}", y: "120"}}\n`);
  const guests = rows(
    (site, at) =>
      `  h${at + 1}: {kind: process, site: ${site}, labels: {x: "${x(at)}", y: "260"}, ports: {eth0: {to: "s${at + 1}:1", addresses: [10.0.0.${at + 1}/24]}}}\n`,
  );
  const links = used.slice(1).map((_, at) => `  l${at + 1}: {between: ["s${at + 1}:${at === 0 ? 2 : 3}", "s${at + 2}:2"], rate: 100M}\n`);
  return `${head}switches:\n${switches}guests:\n${guests}links:${links.length ? "\n" + links.join("") : " {}\n"}`;
}
