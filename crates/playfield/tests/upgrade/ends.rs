//! Processes that are killed, or get SIGTERM, while another is about to take over.

use std::io::Read as _;
use std::sync::atomic::Ordering;

use playfield::Server;
use rustix::process::{Pid, Signal, kill_process};

use crate::node::{Node, say_that_it_waits, serve};
use crate::players::Manual;
use crate::rooms::{Ledger, WAITS_IN_MOVED, hanging};

/// Serves once the process that started it has ended.
#[test]
#[ignore = "a node that another test starts and ends"]
fn node_that_starts_late() {
    if std::env::var("PLAYFIELD_TEST_NODE").is_ok() {
        say_that_it_waits();
        // Standard input is the socket to that process.
        assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
    }
    serve(Server::new().room::<Ledger>("ledger"));
}

/// Serves once the process that started it has ended, with rooms that continue.
#[test]
#[ignore = "a node that another test starts and ends"]
fn node_that_goes_on_late() {
    WAITS_IN_MOVED.store(true, Ordering::Relaxed);
    serve(Server::new().room::<Ledger>("ledger"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_that_hangs_in_thaw() {
    serve(Server::new().room::<hanging::Ledger>("ledger"));
}

#[test]
fn a_process_that_was_to_replace_one_that_was_killed_does_not_serve() {
    let mut node = Node::start();
    node.order("ends::node_that_starts_late");
    node.child.kill().unwrap();
    let said = node.says(&["node: ", "listening on "]);
    assert!(said.contains("which this one was to replace, has ended"), "{said}");
    assert!(!node.ends(), "the first was killed");
}

/// The new process has the whole state, and no other process has it.
#[test]
fn a_process_that_was_told_to_begin_goes_on_when_the_one_before_is_killed() {
    let mut node = Node::start();
    let mut client = Manual::join(&node);
    assert_eq!(client.count(1, 1), 1);
    node.order("ends::node_that_goes_on_late");
    node.child.kill().unwrap();
    let said = node.says(&["node: ", "listening on "]);
    assert!(said.starts_with("listening on "), "{said}");
    assert_eq!(client.count(1, 2), 2);
}

#[test]
fn a_node_that_is_told_to_stop_while_another_process_hangs_ends_that_and_saves() {
    for program in ["node_that_hangs", "ends::node_that_hangs_in_thaw"] {
        let mut node = Node::start_with("timeouts.upgrade=10m");
        let mut client = Manual::join(&node);
        assert_eq!(client.count(1, 1), 1);
        node.order(program);
        kill_process(Pid::from_child(&node.child), Signal::TERM).unwrap();
        assert!(node.ends(), "{program}: it ended in order");
        let again = Node::start_on(node.store.clone(), "");
        let mut client = Manual::join(&again);
        assert_eq!(client.count(1, 2), 2, "{program}: the room was saved");
    }
}
