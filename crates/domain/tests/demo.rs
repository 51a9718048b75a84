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
