//! # steer: on which core is each flow processed, and why
//!
//! **Question answered**: given what the operator asked for, what the cores are doing now and which virtual machines are pinned where,
//! what should the kernel's steering program be told — and afterwards, why is this flow on that core?
