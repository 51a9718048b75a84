//! The node as it is shown.

use crate::host::memory;
use crate::service::Node;
use api::{Fault, MemoryUse, NodeView, StoreView, chain};

impl Node {
    /// The node as it is now.
    pub fn view(&self) -> NodeView {
        let members = self.directory.all();
        let problem = self.store.problem();
        let store_fault = |problem: &crate::store::StoreError| {
            Fault::new("state file", "save changes", chain(problem), problem.remedy())
        };
        NodeView {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_s: self.facts.started.elapsed().as_secs(),
            config_file: self
                .facts
                .config_file
                .path
                .as_ref()
                .map(|path| path.display().to_string()),
            config_faults: self.config_faults(),
            run_dir: self.run_dir.path().display().to_string(),
            cores: self.facts.config.cores.clone(),
            switches: members.len(),
            ports: members.iter().map(|member| member.state().ports.len()).sum(),
            memory: MemoryUse { used: memory::used(), may: self.memory.all },
            bounds: self.hits().show(),
            background: self.background,
            store: StoreView {
                file: self.store.path().display().to_string(),
                fault: problem.as_deref().map(store_fault),
                set_aside: self.facts.set_aside.as_ref().map(|path| path.display().to_string()),
                left_out: self.store.left_out(),
                copied_from: self.facts.copied_from().map(Into::into),
            },
        }
    }
}
