// Which page is shown: what stands behind # in the address.

class Place {
  path: string[] = $state(parts());

  constructor() {
    addEventListener("hashchange", () => (this.path = parts()));
  }

  go(path: string) {
    location.hash = path;
  }
}

function parts(): string[] {
  const path = location.hash.replace(/^#\/?/, "");
  try {
    return path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return ["?"];
  }
}

export const place = new Place();
export const toSlice = (slice: string) => `#/slices/${slice.split("/").map(encodeURIComponent).join("/")}`;
export const toSwitch = (slice: string, name: string) => `${toSlice(slice)}/switches/${encodeURIComponent(name)}`;
export const toGuest = (slice: string, name: string) => `${toSlice(slice)}/guests/${encodeURIComponent(name)}`;
