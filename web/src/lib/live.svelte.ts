// What happens, as the controller tells it: one stream of server-sent events for the whole portal. The browser resumes it by the last number.

import type { Event, News } from "./api";

/** Events that are kept here. */
const KEPT = 1000;
/** How long until a stream that the controller ended is opened again, in milliseconds. */
const AGAIN = 2000;

type Listener = (news: News) => void;

class Live {
  events: Event[] = $state.raw([]);
  open = $state(false);
  #source: EventSource | null = null;
  #again: ReturnType<typeof setTimeout> | undefined;
  #listeners = new Set<Listener>();

  start() {
    this.stop();
    const source = new EventSource("/v1/events?follow=true");
    this.#source = source;
    source.onopen = () => (this.open = true);
    source.onerror = () => {
      this.open = false;
      if (source.readyState !== EventSource.CLOSED) return;
      this.#again = setTimeout(() => this.start(), AGAIN);
    };
    source.addEventListener("change", (message) => {
      const event = JSON.parse(message.data) as Event;
      this.events = [...this.events.slice(-KEPT + 1), event];
      this.#tell(event);
    });
    source.addEventListener("present", (message) => {
      const news = JSON.parse(message.data) as Partial<News>;
      if (news.kind) this.#tell(news as News);
    });
  }

  stop() {
    clearTimeout(this.#again);
    this.#source?.close();
    this.#source = null;
    this.open = false;
  }

  /** Forgets what was heard: another user comes. */
  forget() {
    this.stop();
    this.events = [];
  }

  /** Hears of each; returns how to hear no more. */
  hear(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(news: News) {
    for (const listener of this.#listeners) listener(news);
  }
}

export const live = new Live();
