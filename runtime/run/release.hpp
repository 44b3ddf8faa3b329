#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/random/random.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/experiment.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/metrics.hpp"

namespace cudp {

/// Where a new run's folder is to be: --out, or runs/ under a name of its own.
std::filesystem::path run_place(const Experiment& experiment);

/// The last of a new run's files, once its ledger is there, and the folder moved to its place: from
/// then on the run can be resumed. `lock` holds the folder, which is returned.
RunFolder publish_run(NewRunFolder& place, const Checkpoint& first, const RandomKey& key,
                      const Seal& seal, std::optional<FolderLock>& lock, Reporter& reporter);

/// Plans a new run from its size, by `plan`. Where that refuses and the size is private, the reason
/// may tell the noisy number: that release is charged and certified, and the folder is in its
/// place, before the reason is told. Throws what `plan` throws.
void plan_from_size(NewRunFolder& place, const Experiment& experiment, const TrainingSize& size,
                    const std::function<void()>& plan);

/// Says on stderr what the promise is too weak for.
void warn_of_weak_privacy(const TrainingSize& size, double epsilon, double delta,
                          Reporter& reporter);

/// What the certificate says of the test set.
std::string test_set_text(const DataSplit& data);

/// Flags that the certificate must show.
std::vector<std::string> unsafe_flags(const Experiment& experiment);

/// What the engine's model makes of the test set, where there is one, into `row`.
void measure(Engine& engine, const Dataset& test, bool averaged, MetricsRow& row);

/// Writes the rows so far: accuracies on a public test set among the released files, on another one
/// in the private folder.
void write_metrics(const RunFolder& folder, const DataSplit& data,
                   const std::vector<MetricsRow>& metrics);

/// Writes the folder's release: the weights with what `cudp eval` needs to rebuild the network,
/// metrics, certificate and curves.
void write_release(const RunFolder& folder, const Experiment& experiment,
                   std::vector<float> parameters, const std::vector<MetricsRow>& metrics,
                   const nlohmann::ordered_json& certificate, Reporter& reporter);

/// Adds to a run's numbers what every result says, writes it, by which the run is complete, and
/// removes what is left over. last: where training ended.
nlohmann::ordered_json complete(const RunFolder& folder, const Experiment& experiment,
                                const MetricsRow& last, const nlohmann::ordered_json& certificate,
                                nlohmann::ordered_json numbers);

/// Removes what only a run in progress needs: key and checkpoints.
void remove_leftovers(const RunFolder& folder);

}  // namespace cudp
