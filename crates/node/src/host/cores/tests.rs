use super::*;
use std::fs;

/// A made-up `/sys`.
fn sys(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join("devices/system").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn shown(sys: &tempfile::TempDir) -> Vec<(u16, u16, Option<u16>)> {
    let cores = online(sys.path()).unwrap();
    cores.iter().map(|core| (core.id().0, core.numa.0, core.sibling.map(|id| id.0))).collect()
}

#[test]
fn cores_have_their_sibling_and_node() {
    let sys = sys(&[
        ("cpu/online", "0-3\n"),
        ("cpu/cpu0/topology/thread_siblings_list", "0,2\n"),
        ("cpu/cpu1/topology/thread_siblings_list", "1,3\n"),
        ("cpu/cpu2/topology/thread_siblings_list", "0,2\n"),
        ("cpu/cpu3/topology/thread_siblings_list", "1,3\n"),
        ("node/online", "0-1\n"),
        ("node/node0/cpulist", "0,2\n"),
        ("node/node1/cpulist", "1,3\n"),
    ]);
    assert_eq!(shown(&sys), [(0, 0, Some(2)), (1, 1, Some(3)), (2, 0, Some(0)), (3, 1, Some(1))]);
}

#[test]
fn a_core_that_is_offline_is_no_core_and_no_sibling() {
    let sys = sys(&[
        ("cpu/online", "0,3\n"),
        ("cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
        ("node/online", "0\n"),
        ("node/node0/cpulist", "0-3\n"),
    ]);
    assert_eq!(shown(&sys), [(0, 0, None), (3, 0, None)]);
}

#[test]
fn of_four_threads_each_has_the_next_as_sibling() {
    let siblings = |id| (format!("cpu/cpu{id}/topology/thread_siblings_list"), "4-7\n");
    let files: Vec<_> = (4..8).map(siblings).collect();
    let mut files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    files.push(("cpu/online", "4-7"));
    let siblings: Vec<_> = shown(&sys(&files)).into_iter().map(|(_, _, sibling)| sibling).collect();
    assert_eq!(siblings, [Some(5), Some(6), Some(7), Some(4)]);
}

#[test]
fn a_node_of_memory_only_has_no_cores() {
    let sys = sys(&[
        ("cpu/online", "0\n"),
        ("node/online", "0-1\n"),
        ("node/node0/cpulist", "\n"),
        ("node/node1/cpulist", "0\n"),
    ]);
    assert_eq!(shown(&sys), [(0, 1, None)]);
}

#[test]
fn what_is_wrong_names_the_file() {
    let missing = online(sys(&[]).path()).unwrap_err().to_string();
    assert!(missing.contains("cpu/online cannot be read"), "{missing}");
    let odd = online(sys(&[("cpu/online", "none")]).path()).unwrap_err().to_string();
    assert!(odd.contains("cpu/online: `none` is no list of cores"), "{odd}");
}

#[test]
fn this_host_has_cores() {
    let cores = online(Path::new("/sys")).unwrap();
    assert!(!cores.is_empty());
    assert!(place::CoreTable::new(cores).is_ok());
}
