#pragma once
#include <nanobind/nanobind.h>

namespace cudp::python {

/// Each of these functions adds the Python functions and classes of one topic to the extension
/// module.
void bind_accounting(nanobind::module_& m);
void bind_training(nanobind::module_& m);
void bind_budget(nanobind::module_& m);
void bind_models(nanobind::module_& m);
void bind_tuning(nanobind::module_& m);
void bind_tables(nanobind::module_& m);

}  // namespace cudp::python
