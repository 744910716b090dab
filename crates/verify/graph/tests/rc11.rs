//! Holds the engine against the memory model: litmus tests of the literature, numbers of
//! executions, and an enumeration of what RC11 allows that shares no code with it.

mod rc11 {
    mod all_graphs;
    mod litmus;
    mod numbers;
    mod program;
}
