//! Stint decides how much thinking each request deserves, and holds models to it.
