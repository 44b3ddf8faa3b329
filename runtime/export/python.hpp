#pragma once
#include <string>

#include "runtime/export/note.hpp"
#include "runtime/results/released_model.hpp"

namespace cudp {

/// A released model as one file of Python that needs numpy alone: a module with score(rows), and a
/// program that writes what `cudp predict` writes. It reads cells, dates, numbers and missing
/// values as cudp does (scorer.py has the code) and holds columns and weights. `name` is the
/// model's place, for errors. Throws InputError, naming what is not exported, on a model of texts
/// or of scattering features.
std::string python_scorer(const ReleasedModel& model, const ExportNote& note,
                          const std::string& name);

}  // namespace cudp
