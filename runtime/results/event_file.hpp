#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

/// Encodes rows as TensorBoard reads them: records with a masked CRC-32C, each an Event of
/// tensorflow/core/util/event.proto with a Summary of simple values. A row's step is that of its
/// event. The events have no time, for the reason that MetricsRow has none.
std::string encode_events(const std::vector<MetricsRow>& rows);

/// The file of a run's events in a folder of the user's. Its content is encode_events() of the rows
/// at any time, so that it shows what metrics.jsonl shows.
class EventFile {
 public:
  static constexpr const char* kName = "events.out.tfevents.0.cudp";

  /// Continues the file of a run that has these rows, or creates an empty one, with its folder. A
  /// file may lack the newest rows, and may have rows that the run will repeat. Throws InputError
  /// if it is not one of these rows.
  EventFile(const std::filesystem::path& folder, const std::vector<MetricsRow>& rows);

  void write(const std::vector<MetricsRow>& rows);

 private:
  std::filesystem::path path_;
  std::string written_;
};

/// Throws InputError unless the folder is on this machine, can be written, and has no events.
void check_events_folder(const std::string& folder);

/// Throws InputError if the folder is among the results of the run in `root`.
void check_apart_from_run(const std::string& folder, const std::filesystem::path& root);

}  // namespace cudp
