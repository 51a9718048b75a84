//! Rules, printed as they read back.

use super::Rule;
use super::own::{Own, print_underlay};
use openflow::DEFAULT_PRIORITY;
use openflow::text::{no_names, print_match};

pub(super) fn rule(rule: &Rule) -> String {
    let cookie = (rule.cookie != 0).then(|| format!("cookie={:#x}", rule.cookie));
    let key = Some(key(rule)).filter(|text| !text.is_empty());
    let actions = Some(format!("actions={}", rule.placing));
    [cookie, key, actions].into_iter().flatten().collect::<Vec<_>>().join(",")
}

/// Priority and match: what tells rules apart.
pub(super) fn key(rule: &Rule) -> String {
    let mut parts = Vec::new();
    if rule.priority != DEFAULT_PRIORITY {
        parts.push(format!("priority={}", rule.priority));
    }
    parts.extend(Some(print_match(&rule.fields, &no_names)).filter(|text| !text.is_empty()));
    parts.extend(own(&rule.own));
    parts.join(",")
}

fn own(own: &Own) -> Vec<String> {
    let Own { vm, tun_src, tun_dst, frag } = own;
    let vm = vm.map(|vm| format!("vm_id={}", vm.get()));
    let tun_src = tun_src.as_ref().map(|src| format!("tun_src={}", print_underlay(src)));
    let tun_dst = tun_dst.as_ref().map(|dst| format!("tun_dst={}", print_underlay(dst)));
    let frag = frag.map(|frag| format!("ip_frag={}", frag.name()));
    [vm, tun_src, tun_dst, frag].into_iter().flatten().collect()
}
