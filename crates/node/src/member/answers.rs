//! Streams: connections that the node opens because the controller has a question about a guest. The controller asks by them, and cannot call by itself.

use crate::http;
use crate::service::Node;
use api::exec::STREAM;
use api::{Client, ClientError};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Who answers, and what has been asked.
pub struct Answers {
    by: Option<(Arc<Node>, Handle)>,
    /// What is open, or was refused: as long as the controller names it.
    begun: BTreeSet<u64>,
}

impl Answers {
    /// By a node, within a runtime.
    pub fn new(node: Arc<Node>) -> Self {
        Self { by: Some((node, Handle::current())), begun: BTreeSet::new() }
    }

    /// By nobody.
    #[cfg(test)]
    pub fn none() -> Self {
        Self { by: None, begun: BTreeSet::new() }
    }

    /// Opens what the controller wants and is not open yet.
    pub(super) fn open(&mut self, controller: &Arc<Client>, path: &str, wanted: BTreeSet<u64>) {
        let Some((node, runtime)) = &self.by else { return };
        for number in wanted.difference(&self.begun) {
            let (node, controller) = (node.clone(), controller.clone());
            let path = format!("{path}/streams/{number}");
            runtime.spawn(async move {
                if let Err(error) = answer(&controller, &path, node).await {
                    tracing::info!(
                        "a question of the domain's controller is not answered: {error}"
                    );
                }
            });
        }
        self.begun = wanted;
    }
}

async fn answer(controller: &Client, path: &str, node: Arc<Node>) -> Result<(), ClientError> {
    let connection = controller.upgraded(path, Vec::new(), STREAM).await?;
    if let Err(error) = http::serve_stream(connection, node).await {
        tracing::debug!("{path}: {error}");
    }
    Ok(())
}
