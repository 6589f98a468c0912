//! What happens without being asked: sealing, late events, catalogue refresh, recovery, token use.

mod catalogue;
mod late;
mod recovery;
mod sealing;
mod token_use;

pub(crate) use self::{late::LateEvents, token_use::UsedTokens};

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::App;

impl App {
    /// Starts the jobs; they end when `stop` is cancelled.
    pub fn start_jobs(self: &Arc<Self>, stop: &CancellationToken) {
        let jobs: [(&'static str, _); 3] = [
            (
                "sealing",
                Box::pin(sealing::run(Arc::clone(self), stop.clone()))
                    as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>,
            ),
            ("late events", Box::pin(late::run(Arc::clone(self), stop.clone()))),
            ("token use", Box::pin(token_use::run(Arc::clone(self), stop.clone()))),
        ];
        for (name, job) in jobs {
            self.tasks.spawn(async move {
                job.await;
                tracing::debug!(job = name, "job ended");
            });
        }
        catalogue::start(self, stop);
    }
}
