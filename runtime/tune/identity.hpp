#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/sweep/request.hpp"
#include "runtime/sweep/trainings.hpp"

namespace cudp {

/// What a tuning must have in common with its continuations, besides the budget: a text by name.
using TuningIdentity = std::map<std::string, std::string>;

/// Returns digests of the candidates' settings, whatever source they come from, of the schema and
/// of the model files, and the unit of privacy. Paths are absolute. Throws InputError if a file
/// cannot be read.
TuningIdentity identity_of(const std::vector<SweepCell>& candidate_cells, const DataFacts& facts);

}  // namespace cudp
