#pragma once
// Code shared by `cudp eval` and `cudp predict`: a released model, and the data to score.
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/config/option.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/results/scorer.hpp"

namespace cudp {

/// Returns the options that both commands have: which data, how to read them, and the machine.
std::vector<Option> scoring_options();

/// Returns the scoring request that these options describe. The command sets labels, ids and groups
/// itself.
ScoringRequest scoring_request(const TrainConfig& config);

/// Returns the text for a progress line: "scoring 'patients.csv'".
std::string scoring_text(const std::string& dataset);

/// Reads a released model from a run folder, its release folder or a file. The embedding of words
/// is read from the file that the options name, if they do.
ReleasedModel model_for(const TrainConfig& config, const std::string& place);

}  // namespace cudp
