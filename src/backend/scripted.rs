//! A backend that does as it is told, for tests and for trying a configuration without a model.
