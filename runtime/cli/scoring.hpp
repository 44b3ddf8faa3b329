#pragma once
// Code shared by `cudp eval` and `cudp predict`: a released model, and the data to score.
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/config/option.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/results/scorer.hpp"

namespace cudp {

/// Returns the options of both commands: the data, how they are read, and the machine.
std::vector<Option> scoring_options();

/// Returns the request of these options. The command sets labels, ids and groups itself.
ScoringRequest scoring_request(const TrainConfig& config);

/// Returns the text for a progress line: "scoring 'patients.csv'".
std::string scoring_text(const std::string& dataset);

/// Reads the model of a run folder, its release folder or a file, with the words' vectors that the
/// options name.
ReleasedModel model_for(const TrainConfig& config, const std::string& place);

}  // namespace cudp
