//! (essay to come)
