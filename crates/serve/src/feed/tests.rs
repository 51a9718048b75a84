//! Each event once, in order, whoever is away or slow.

use super::*;
use api::{Happening, Noun};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn tell(feed: &Feed, text: impl Into<String>) {
    feed.tell(News::of_node(Noun::Node, "n", Happening::State, text));
}

fn events(portion: Portion) -> Vec<Arc<Event>> {
    match portion {
        Portion::Events(events) => events,
        Portion::Gone(gone) => panic!("{gone:?}"),
    }
}

#[test]
fn a_reader_that_goes_away_after_each_portion_misses_none_and_repeats_none() {
    let feed = Feed::default();
    let (mut at, mut read) = (feed.newest(), Vec::new());
    for wanted in 0..10_000 {
        tell(&feed, wanted.to_string());
        // Away for a while that grows and shrinks; each return is a new reader with the old number.
        if wanted % 777 == 0 {
            for event in events(feed.after(at)) {
                at = event.revision;
                read.push(event.news.text.parse::<u32>().unwrap());
            }
        }
    }
    while let [.., last] = &events(feed.after(at))[..] {
        read.extend(
            events(feed.after(at)).iter().map(|event| event.news.text.parse::<u32>().unwrap()),
        );
        at = last.revision;
    }
    assert!(read.iter().copied().eq(0..10_000), "{} read", read.len());
}

#[test]
fn what_is_kept_is_bounded_by_number_and_by_size_and_who_is_behind_is_told() {
    let feed = Feed::default();
    let start = feed.newest();
    for _ in 0..KEPT {
        tell(&feed, "");
    }
    assert_eq!(events(feed.after(start)).len(), PORTION);
    tell(&feed, "");
    let gone = Gone { since: start, oldest: Revision(1), newest: feed.newest() };
    assert_eq!(feed.after(start), Portion::Gone(gone));
    assert_eq!(events(feed.after(feed.oldest())).len(), PORTION);
    for _ in 0..20 {
        tell(&feed, "x".repeat(KEPT_BYTES / 10));
    }
    assert!(feed.newest().0 - feed.oldest().0 < 10, "{} to {}", feed.oldest(), feed.newest());
}

#[test]
fn numbers_go_on_after_a_restart_and_a_cursor_from_before_is_known_as_such() {
    let stored = Arc::new(AtomicU64::new(0));
    let start = || {
        let note = stored.clone();
        Feed::after_block(Revision(stored.load(Relaxed)), move |up_to| note.store(up_to.0, Relaxed))
    };
    let first = start();
    (0..3).for_each(|_| tell(&first, ""));
    let cursor = first.newest();
    let second = start();
    tell(&second, "");
    assert!(second.newest() > cursor);
    assert!(matches!(second.after(cursor), Portion::Gone(_)));
    // A number that no process gave yet is no cursor either.
    assert!(matches!(second.after(Revision(second.newest().0 + 1)), Portion::Gone(_)));
    let before = stored.load(Relaxed);
    for _ in 0..BLOCK / 2 + 1 {
        tell(&second, "");
    }
    assert!(
        stored.load(Relaxed) > before,
        "the next block is reserved when half of this one is used"
    );
}

#[tokio::test]
async fn a_reader_waits_for_news_and_is_let_go_when_there_will_be_none() {
    let feed = Feed::default();
    let at = feed.newest();
    tell(&feed, "");
    assert!(feed.wait(at).await, "it is there already");
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move { feed.wait(feed.newest()).await }
    });
    feed.close();
    assert!(!waiting.await.unwrap());
    tell(&feed, "");
    assert!(!feed.wait(at).await, "a closed feed stays closed");
}
