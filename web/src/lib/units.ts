// Numbers with units, as people read them.

const shown = (value: number) => (value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1));

function scaled(value: number, base: number, units: string[]): string {
  let at = 0;
  while (value >= base && at < units.length - 1) {
    value /= base;
    at += 1;
  }
  return `${shown(value)} ${units[at]}`;
}

export const bytes = (value: number) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
export const rate = (value: number) => scaled(value, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
export const cores = (milli: number) => shown(milli / 1000);
export const micros = (value: number) => (value < 1000 ? `${value} µs` : `${(value / 1000).toFixed(2)} ms`);
export const moment = (ns: number) => new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 23) + "Z";
