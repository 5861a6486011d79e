//! Tests of sharing, bounds and buffers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::super::fixture::run;
use super::super::shared_body::LONGEST;
use super::*;

/// Renders how often it was called, this call included.
fn count(
    rendered: &Arc<AtomicUsize>,
) -> impl FnOnce(&mut Snapshots, &mut Vec<u8>) -> anyhow::Result<()> + Send + use<> {
    let rendered = Arc::clone(rendered);
    move |_, out| {
        let n = rendered.fetch_add(1, Ordering::Relaxed) + 1;
        out.extend_from_slice(n.to_string().as_bytes());
        Ok(())
    }
}

fn text(body: Result<BodyReader, Failed>) -> String {
    String::from_utf8(bytes(body).to_vec()).unwrap()
}

fn bytes(body: Result<BodyReader, Failed>) -> Bytes {
    body.unwrap_or_else(|_| panic!("rendered")).bytes
}

#[test]
fn simultaneous_requests_share_one_rendering() {
    run(async {
        let renderer = Renderer::new();
        let rendered = Arc::default();
        let ask = |key| renderer.body(key, Encoding::Identity, count(&rendered));
        let (one, two, other) = tokio::join!(ask('a'), ask('a'), ask('b'));
        let (one, two) = (bytes(one), bytes(two));
        assert_eq!(one.as_ptr(), two.as_ptr(), "one text in memory");
        assert_ne!(bytes(other), one, "who asks for something else gets that");
        assert_eq!(rendered.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn plain_and_compressed_bodies_share_one_rendering() {
    run(async {
        let renderer = Renderer::new();
        let rendered = Arc::default();
        let ask = |encoding| renderer.body((), encoding, count(&rendered));
        let (plain, one, two) =
            tokio::join!(ask(Encoding::Identity), ask(Encoding::Gzip), ask(Encoding::Gzip));
        let (one, two) = (bytes(one), bytes(two));
        assert_eq!(one.as_ptr(), two.as_ptr());
        assert_eq!(*one, *gzip(&bytes(plain), Vec::new()));
    });
}

/// A rendering that has started may lack data handed over since.
#[test]
fn requests_during_a_rendering_share_the_next_one() {
    run(async {
        let renderer = Renderer::new();
        let rendered = Arc::default();
        let (started, has_started) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let count_first = count(&rendered);
        let first = renderer.body((), Encoding::Identity, move |snapshot, out| {
            started.send(()).unwrap();
            may_go_on.recv().unwrap();
            count_first(snapshot, out)
        });
        let later = async {
            // The first request is polled before this one and then renders on a thread of its own.
            tokio::task::yield_now().await;
            tokio::task::spawn_blocking(move || has_started.recv().unwrap())
                .await
                .unwrap();
            let ask = || renderer.body((), Encoding::Identity, count(&rendered));
            let let_go = async { go_on.send(()).unwrap() };
            let (one, two, ()) = tokio::join!(ask(), ask(), let_go);
            (text(one), text(two))
        };
        let (first, later) = tokio::join!(first, later);
        assert_eq!(text(first), "1");
        assert_eq!(later, ("2".to_owned(), "2".to_owned()));
    });
}

/// Requests a fifth body while four are lent out. It arrives once one of the four is dropped.
async fn fifth(renderer: &Renderer<()>, drop_one: impl AsyncFnOnce(&mut Vec<BodyReader>)) {
    let rendered = Arc::default();
    let ask = || renderer.body((), Encoding::Identity, count(&rendered));
    let mut unread = Vec::new();
    for _ in 0..MAX_BODIES {
        unread.push(ask().await.unwrap_or_else(|_| panic!("there is room")));
    }
    let fifth = ask();
    let dropped = async {
        drop_one(&mut unread).await;
        assert_eq!(unread.len(), MAX_BODIES - 1);
    };
    let (fifth, ()) = tokio::join!(fifth, dropped);
    assert_eq!(text(fifth), "5");
    let n_called_back = unread
        .iter()
        .filter(|body_reader| body_reader.shared_body.due().is_none())
        .count();
    assert_eq!(n_called_back, 0, "one was needed");
}

#[test]
fn the_body_stalled_for_longest_is_reclaimed() {
    run(async {
        let begin = Instant::now();
        fifth(&Renderer::new(), async |unread| {
            // The first reader makes progress.
            while unread[1].shared_body.due().is_some() {
                unread[0].shared_body.read();
                tokio::time::sleep(STALLED / 20).await;
            }
            unread.remove(1);
        })
        .await;
        assert!(
            begin.elapsed() >= STALLED && begin.elapsed() < LONGEST,
            "{:?}",
            begin.elapsed()
        );
    });
}

#[test]
fn a_slow_reader_cannot_keep_a_body_forever() {
    run(async {
        let begin = Instant::now();
        fifth(&Renderer::new(), async |unread| {
            while unread[0].shared_body.due().is_some() {
                unread
                    .iter()
                    .for_each(|body_reader| body_reader.shared_body.read());
                tokio::time::sleep(STALLED / 20).await;
            }
            unread.remove(0);
        })
        .await;
        assert!(begin.elapsed() >= LONGEST, "{:?}", begin.elapsed());
    });
}

#[test]
fn a_returned_body_makes_room_at_once() {
    run(async {
        let begin = Instant::now();
        fifth(&Renderer::new(), async |unread| {
            unread.pop();
        })
        .await;
        assert!(begin.elapsed() < STALLED, "{:?}", begin.elapsed());
    });
}

#[test]
fn a_failed_rendering_is_an_error_and_the_next_one_succeeds() {
    run(async {
        let renderer = Renderer::new();
        for _ in 0..=MAX_BODIES {
            let failed = renderer.body((), Encoding::Gzip, |_, _| anyhow::bail!("out of order"));
            assert_eq!(failed.await.err(), Some(Failed));
        }
        let panicked = renderer.body((), Encoding::Identity, |_, _| panic!("out of order"));
        assert_eq!(panicked.await.err(), Some(Failed));
        assert!(
            renderer
                .body((), Encoding::Identity, count(&Arc::default()))
                .await
                .is_ok()
        );
    });
}

#[test]
fn buffers_are_reused_and_freed_when_idle() {
    run(async {
        let renderer = Renderer::keeping_for(Duration::from_millis(1));
        let rendered = Arc::default();
        let ask = || renderer.body((), Encoding::Gzip, count(&rendered));
        drop(ask().await);
        assert!(lock(&renderer.shared.spare).text.capacity() > 0);
        assert!(lock(&renderer.shared.spare).packed.capacity() > 0);
        while lock(&renderer.shared.spare).watched {
            tokio::task::yield_now().await;
        }
        assert_eq!(lock(&renderer.shared.spare).text.capacity(), 0);
        assert_eq!(
            text(renderer.body((), Encoding::Identity, count(&rendered)).await),
            "2"
        );
    });
}
