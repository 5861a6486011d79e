//! Thread that answers questions about the brokers, so that the loop never waits for them.

use std::sync::mpsc::{Receiver, Sender, TryIter, channel};
use std::thread::JoinHandle;

use anyhow::Context as _;

/// Thread that takes questions and gives answers. Dropping it waits for the thread, at most until a request has failed.
pub(super) struct AnsweringThread<Q, A> {
    name: &'static str,
    questions: Option<Sender<Q>>,
    answers: Receiver<A>,
    thread: Option<JoinHandle<()>>,
}

impl<Q: Send + 'static, A: Send + 'static> AnsweringThread<Q, A> {
    /// Starts the thread. `run` must return once there are no more questions, or its answers are not taken any more.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        name: &'static str,
        run: impl FnOnce(Receiver<Q>, Sender<A>) + Send + 'static,
    ) -> anyhow::Result<AnsweringThread<Q, A>> {
        let (questions, asked) = channel();
        let (reply, answers) = channel();
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || run(asked, reply));
        Ok(AnsweringThread {
            name,
            questions: Some(questions),
            answers,
            thread: Some(thread.with_context(|| format!("start the thread `{name}`"))?),
        })
    }

    /// Asks a question.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn ask(&self, question: Q) -> anyhow::Result<()> {
        let sent = self.questions.as_ref().map(|questions| questions.send(question));
        let is_sent = sent.is_some_and(|sent| sent.is_ok());
        anyhow::ensure!(is_sent, "the thread `{}` has ended", self.name);
        Ok(())
    }

    /// Returns the answers so far.
    pub fn answers(&self) -> TryIter<'_, A> {
        self.answers.try_iter()
    }
}

impl<Q, A> AnsweringThread<Q, A> {
    /// Waits until the thread has ended.
    pub fn close(&mut self) {
        // The thread ends once the sender is dropped.
        self.questions = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread `{}` panicked", self.name);
        }
    }
}

impl<Q, A> Drop for AnsweringThread<Q, A> {
    fn drop(&mut self) {
        self.close();
    }
}
