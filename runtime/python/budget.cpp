#include <string>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "runtime/cli/accountant.hpp"
#include "runtime/python/module.hpp"
#include "runtime/run/budget_file.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

privacy::RunFilter read_budget(const std::string& path) {
  const nb::gil_scoped_release without_gil;
  return BudgetFile(path).filter();
}

void create_budget(const std::string& path, double epsilon, double delta) {
  const nb::gil_scoped_release without_gil;
  BudgetFile::create(path, epsilon, delta);
}

/// Returns a tuple for each training that was charged to a budget file. Its elements are the
/// training's cost as a fraction of the budget's Renyi divergence, its cost as a fraction of the
/// part of delta that is reserved for the deltas of trainings, and its note.
nb::list runs_of(const privacy::RunFilter& filter) {
  const auto fraction = [](std::uint64_t units) { return static_cast<double>(units) * 0x1p-62; };
  nb::list runs;
  for (const privacy::RunFilter::Run& run : filter.runs())
    runs.append(nb::make_tuple(fraction(run.divergence), fraction(run.failure), run.note));
  return runs;
}

double epsilon_left(const privacy::RunFilter& filter, double delta, double factor) {
  double epsilon = 0.0;
  for_user([&] { epsilon = filter.epsilon_left(delta, factor); });
  return epsilon;
}

}  // namespace

void bind_budget(nb::module_& m) {
  m.def("create_budget", &create_budget);
  m.def("read_budget", &read_budget);
  nb::class_<privacy::RunFilter>(m, "BudgetState")
      .def_prop_ro("epsilon", [](const privacy::RunFilter& f) { return f.budget().epsilon; })
      .def_prop_ro("delta", [](const privacy::RunFilter& f) { return f.budget().delta; })
      .def_prop_ro("order", [](const privacy::RunFilter& f) { return f.budget().order; })
      .def_prop_ro("remaining", &privacy::RunFilter::remaining)
      .def_prop_ro("delta_left", &privacy::RunFilter::delta_left)
      .def_prop_ro("unit", &privacy::RunFilter::unit)
      .def_prop_ro("runs", &runs_of)
      .def("epsilon_left", &epsilon_left);
}

}  // namespace cudp::python
