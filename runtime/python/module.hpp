#pragma once
#include <nanobind/nanobind.h>

namespace cudp::python {

/// Adds the functions for privacy accounting to the Python extension module `m`. Each of the other
/// bind_... functions in this file adds another part: training, budget files, models, tuning,
/// tables, scaling.
void bind_accounting(nanobind::module_& m);
void bind_training(nanobind::module_& m);
void bind_budget(nanobind::module_& m);
void bind_models(nanobind::module_& m);
void bind_tuning(nanobind::module_& m);
void bind_tables(nanobind::module_& m);
void bind_scaling(nanobind::module_& m);

}  // namespace cudp::python
