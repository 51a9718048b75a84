//! The design's own example goes the whole way: it is read, admitted and compiled.

mod common;

use common::{DEMO, admitted, decide, slice, world};
use domain::{compile, diff};

#[test]
fn the_example_is_read_admitted_and_compiled() {
    let (world, slice) = (world(), slice(DEMO));
    let decision = decide(&world, &slice);
    let parts = compile(&slice.spec, &decision);
    let nodes: Vec<String> = parts.keys().map(ToString::to_string).collect();
    assert_eq!(nodes.len(), 4, "one node of each site, and t1, by which link c goes: {nodes:?}");
    assert!(parts.values().all(|part| part.text("demo.yaml").text.contains("declared_by")));
    let again = compile(&slice.spec, &decide(&world, &slice));
    assert_eq!(parts, again);
}

#[test]
fn a_plan_names_what_comes_changes_and_goes() {
    let mut world = world();
    let first = admitted(&world, &slice(DEMO));
    world.insert(first.clone());
    let text = DEMO.replace("rate: 20M", "rate: 30M").replace("h3", "h4");
    let second = admitted(&world, &slice(&text));
    let plan = diff(Some(&first), Some(&second)).to_string();
    let way = "t2–t1–s1";
    assert_eq!(
        plan,
        format!(
            "- guest h3 (s1); interrupts what runs in it\n+ guest h4 (s1)\n~ link c ({way}): rate 20M → 30M"
        )
    );
    assert!(diff(Some(&first), Some(&first)).changes.is_empty());
}

/// Rules of `K` on that node, with what they do.
fn rules(text: &str, node: &str) -> Vec<String> {
    let (world, slice) = (world(), slice(text));
    let parts = compile(&slice.spec, &decide(&world, &slice));
    let part = parts.iter().find(|(name, _)| &***name == node).map(|(_, part)| part);
    let switches = part.into_iter().flat_map(|part| &part.switch);
    switches.filter(|it| it.name.to_string() == "K").flat_map(|it| it.flows.clone()).collect()
}

#[test]
fn an_external_takes_its_vlan_off_and_puts_it_on_wherever_its_switch_is() {
    for switch in ["s1", "s3"] {
        let external =
            format!("rate: 20M}}\nexternals:\n  campus: {{use: campus-120, to: \"{switch}:9\"}}");
        let text = DEMO.replace("rate: 20M}", &external);
        let rules = rules(&text, "t1");
        let has =
            |words: &[&str]| rules.iter().any(|rule| words.iter().all(|word| rule.contains(word)));
        assert!(has(&["dl_vlan=120,actions=pop_vlan,meter:"]), "{switch}: {rules:#?}");
        assert!(has(&["push_vlan:0x8100,set_field:4216->vlan_vid,output:x"]), "{rules:#?}");
        let kept_out = "dl_dst=01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0,actions=drop";
        assert_eq!(rules.iter().filter(|rule| rule.contains(kept_out)).count(), 2, "{rules:#?}");
    }
}
