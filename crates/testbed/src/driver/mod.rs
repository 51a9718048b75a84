//! # A guest's network driver, made for measuring
//!
//! **Question answered**: how does one load a switch that is faster than any guest?
//!
//! A vhost-user front-end with guests played in this process: [`frontend`] makes the guest's memory and hands its rings to a switch,
//! [`ring`] is the driver's side of split and packed virtqueues, [`lean`] plays two guests on one core at up to several times the
//! speed of DPDK's testpmd, [`echo`] the least that a switch can be between them, [`plain`] one guest that sends and receives frame by
//! frame for tests. [`places`] says where everything is in a guest's memory.
//!
//! [`traffic`], [`flows`] and [`frame`] say what each packet is as a function of its number, so that [`verify`] can compare what arrives byte by
//! byte; [`latency`] paces and times.
//!
//! The switch is trusted to be a switch here: the driver never crashes on what it does to the rings, but a lying one is only counted.
//! The opposite, a hostile driver against the switch, is the business of the ring's own tests.

pub mod echo;
mod filling;
pub mod flows;
pub mod frame;
pub mod frontend;
pub mod latency;
pub mod lean;
pub mod places;
pub mod plain;
pub mod ring;
pub mod sys;
pub mod traffic;
pub mod verify;
