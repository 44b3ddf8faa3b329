#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/random.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/files.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/metrics.hpp"
#include "runtime/train/experiment.hpp"
#include "runtime/train/reporter.hpp"

namespace cudp {

/// Where a new run's folder is to be: --out, or runs/ under a name of its own.
std::filesystem::path run_place(const Experiment& experiment);

/// The last of a new run's files, once its ledger is there, and the folder moved to its place: from
/// then on the run can be resumed. `lock` holds the folder, which is returned.
RunFolder publish_run(NewRunFolder& place, const Checkpoint& first, const RandomKey& key,
                      std::optional<FolderLock>& lock, Reporter& reporter);

/// Flags that the certificate must show.
std::vector<std::string> unsafe_flags(const Experiment& experiment);

/// Writes the folder's release: the weights with what `cudp eval` needs to rebuild the network,
/// metrics, certificate and curves.
void write_release(const RunFolder& folder, const Experiment& experiment,
                   std::vector<float> parameters, const std::vector<MetricsRow>& metrics,
                   const nlohmann::ordered_json& certificate, Reporter& reporter);

/// Adds to a run's numbers what every result says, writes it, by which the run is complete, and
/// removes what is left over.
nlohmann::ordered_json complete(const RunFolder& folder, const Experiment& experiment,
                                const nlohmann::ordered_json& certificate,
                                nlohmann::ordered_json numbers);

/// Removes what only a run in progress needs: key and checkpoints.
void remove_leftovers(const RunFolder& folder);

}  // namespace cudp
