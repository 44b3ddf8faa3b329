#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/checker.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/verify/released_run.hpp"

namespace cudp {

/// Settings of a replay, which trains a released run again and compares the certificates of both.
struct ReplaySettings {
  std::filesystem::path folder;  ///< folder for the files of the replay; must not exist
  std::string data_dir;  ///< folder in which the data files of the run's settings are searched
  std::string dataset;   ///< data set to use; empty: that in the run's settings
  std::string schema;    ///< schema to use; empty: that in the run's settings
  std::string device;    ///< device to use; empty: that in the run's settings
  std::optional<std::int64_t> seed;  ///< seed of the replay; nullopt: a random one
  std::int64_t threads = 0;
};

/// Result of a replay, which trains a released run again: what its checks have found.
struct ReplayVerdict {
  verify::Verdict transcript;  ///< result of checking the replay against its own certificate
  /// Differences between the certificates of run and replay in fields that should be equal.
  std::vector<std::string> differences;
  std::int64_t seed = 0;  ///< seed from which the replay's random key was derived
  /// Whether the number of training examples is private. If so, the number of releases in the
  /// replay must not be shown: it depends on a noisy number of examples, and the noise is known,
  /// because it follows from the seed.
  bool size_is_private = false;
};

/// Replays a released run: trains its settings again with a seed, in this process and in a folder
/// that only its owner can read. Checks everything that the replay does against the replay's
/// certificate (verify::check), then compares the two certificates. The transcript stays in memory;
/// its size is about 30 bytes per parameter and step. If the number of examples is private, the
/// replay's progress is in its private folder only. Throws InputError if the folder exists or the
/// settings do not allow the training, BudgetError if the privacy budget does not suffice.
ReplayVerdict replay_run(const ReleasedRun& run, const ReplaySettings& settings,
                         Reporter& reporter);

/// Returns the differences between two certificates of the same settings: one line each, with JSON
/// path and both values. Ignores the seed, the build, and everything that follows from noise: a
/// noisy number of examples, the decisions of a filter, the last clipping norm. Also ignores the
/// number of steps and epsilon if the run repeated steps, because its random key was lost.
std::vector<std::string> certificate_differences(const std::string& run, const std::string& replay);

}  // namespace cudp
