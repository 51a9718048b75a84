//! Steering by the real programs: by `BPF_PROG_TEST_RUN`, and on real veth pairs in namespaces of the test's own.

mod checksum;
mod dissect;
mod exits;
mod frames;
mod hook;
mod lab;
mod life;
mod linux_6_1;
mod order;
mod placement;
