// A file on its way from the page where it was begun to the page of its slice.

import type { Declaration } from "./api";

const drafts = new Map<string, Declaration>();

export const keepDraft = (slice: string, declared: Declaration) => drafts.set(slice, declared);
export const takeDraft = (slice: string): Declaration | null => drafts.get(slice) ?? null;
export const dropDraft = (slice: string) => drafts.delete(slice);
