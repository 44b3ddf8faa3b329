#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

/// Encodes rows of metrics as a TensorBoard event file: TFRecords, each an Event of
/// tensorflow/core/util/event.proto with a Summary of simple values. An event's step is that of its
/// row. Events have no time, because the duration of a step depends on private rows.
std::string encode_events(const std::vector<MetricsRow>& rows);

/// TensorBoard event file of a run, in a folder that the user chose. Its content is always
/// encode_events() of the lines in metrics.jsonl.
class EventFile {
 public:
  static constexpr const char* kName = "events.out.tfevents.0.cudp";

  /// Opens the event file of a run that has these rows of metrics, or creates an empty one and its
  /// folder. An existing file may lack the newest rows, or have rows that the resumed run will
  /// repeat. Throws InputError if it is not the event file of these rows.
  EventFile(const std::filesystem::path& folder, const std::vector<MetricsRow>& rows);

  void write(const std::vector<MetricsRow>& rows);

 private:
  std::filesystem::path path_;
  std::string written_;
};

/// Throws InputError unless the folder is on this machine, is writable, and has no event file.
void check_events_folder(const std::string& folder);

/// Throws InputError if the folder is inside a folder with results of the run in `root`.
void check_apart_from_run(const std::string& folder, const std::filesystem::path& root);

}  // namespace cudp
