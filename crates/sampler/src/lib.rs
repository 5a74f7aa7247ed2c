//! Legal configurations of a parameter space: uniform with rejection, and ISAAC's categorical model.
