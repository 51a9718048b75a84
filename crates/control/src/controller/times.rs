//! Slices begin and end by themselves, at the times that their files say; who listens is told before the end.

use super::Controller;
use crate::state::{Kept, State};
use api::{CalendarEntry, Happening, News, Noun};
use domain::{SliceKey, Span};

/// How long before the end it is told, in seconds, and in words.
const NOTICES: [(i64, &str); 3] = [(600, "10 minutes"), (3600, "an hour"), (86_400, "a day")];

impl Controller {
    /// Has slices begin whose time has come, and end whose time is over; tells of ends that come. A controller that was away does so when it is back.
    pub fn keep_time(&self, now_s: i64) {
        let mut state = self.state();
        state.world.set_now(now_s);
        let begun: Vec<SliceKey> = state
            .slices
            .iter_mut()
            .filter_map(|(key, kept)| kept.begin(now_s).then(|| key.clone()))
            .collect();
        let notices = state.notices(now_s);
        let over: Vec<SliceKey> = state
            .slices
            .iter()
            .filter(|(_, kept)| !kept.record.going && end(kept) <= now_s)
            .map(|(key, _)| key.clone())
            .collect();
        // Under the same lock: who gives a slice a later end meanwhile keeps it.
        let ended: Vec<_> =
            over.into_iter().map(|key| (self.removed(&mut state, &key).map(drop), key)).collect();
        drop(state);
        for key in &begun {
            self.tell_time(key, "its time has come");
        }
        for (key, words) in notices {
            self.tell_time(&key, &format!("it ends within {words}"));
        }
        let moves = !begun.is_empty() || !ended.is_empty();
        for (done, key) in ended {
            match done {
                Ok(()) => self.tell_time(&key, "its time is over"),
                // The next look tries again.
                Err(error) => tracing::error!("slice {key} does not end: {}", error.into_fault()),
            }
        }
        if moves {
            self.moved();
        }
    }

    fn tell_time(&self, key: &SliceKey, text: &str) {
        tracing::info!("slice {key}: {text}");
        self.feed.tell(News::of_node(Noun::Slice, &key.to_string(), Happening::State, text));
    }

    /// When which slices are; `names` says whose are told by name.
    pub fn calendar(&self, names: impl Fn(&SliceKey) -> bool) -> Vec<CalendarEntry> {
        domain::calendar(&self.state().world, names)
    }
}

/// When a slice ends.
fn end(kept: &Kept) -> i64 {
    Span::of(&kept.record.spec).until
}

impl State {
    /// Ends that come nearer than they were told last.
    fn notices(&mut self, now_s: i64) -> Vec<(SliceKey, &'static str)> {
        let mut notices = Vec::new();
        let running = self.slices.iter().filter(|(_, kept)| kept.has_begun && !kept.record.going);
        for (key, kept) in running {
            let left = end(kept).saturating_sub(now_s);
            let Some((before, words)) = NOTICES.into_iter().find(|(before, _)| left <= *before)
            else {
                self.told.ends.remove(key);
                continue;
            };
            let told = self.told.ends.insert(key.clone(), before);
            if left > 0 && told.is_none_or(|told| told > before) {
                notices.push((key.clone(), words));
            }
        }
        let slices = &self.slices;
        self.told.ends.retain(|key, _| slices.contains_key(key));
        notices
    }
}
