#pragma once
#include <string>

#include "runtime/export/note.hpp"
#include "runtime/results/released_model.hpp"

namespace cudp {

/// Exports a released model as one Python file that needs only numpy: a module with score(rows),
/// and a program that writes what `cudp predict` writes. It reads cells, dates, numbers and missing
/// values as cudp does (scorer.py has the code), and contains columns and weights. `name`: path of
/// the model, for errors. Throws InputError, naming the reason, on a model of texts or of
/// scattering features.
std::string python_scorer(const ReleasedModel& model, const ExportNote& note,
                          const std::string& name);

/// Returns what a program needs to compute the model's outputs from its tensors, in their order, as
/// JSON: the input's shape, the scale of pixels, and the layers. Throws InputError, naming the
/// reason, on a model of texts or of scattering features.
std::string description_of(const ReleasedModel& model, const std::string& name);

}  // namespace cudp
