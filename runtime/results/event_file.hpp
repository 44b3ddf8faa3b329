#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

/// Encodes rows of metrics as a TensorBoard event file: TFRecords, each an Event of
/// tensorflow/core/util/event.proto with a Summary of simple values. The step of an event is the
/// training step of its row of metrics. Events have no time, because the duration of a step depends
/// on private rows.
std::string encode_events(const std::vector<MetricsRow>& rows);

/// TensorBoard event file of a run, in a folder that the user chose. Its content is always the
/// encoding of the metrics in the run's file metrics.jsonl (encode_events()).
class EventFile {
 public:
  static constexpr const char* kName = "events.out.tfevents.0.cudp";

  /// Opens the TensorBoard event file of a run, or creates its folder and an empty file. rows: the
  /// run's lines of metrics. An existing file may lack the events of the newest lines, or have
  /// events of lines that the resumed run will write again. Throws InputError if it has any other
  /// content.
  EventFile(const std::filesystem::path& folder, const std::vector<MetricsRow>& rows);

  void write(const std::vector<MetricsRow>& rows);

 private:
  std::filesystem::path path_;
  std::string written_;
};

/// Throws InputError unless the folder is on this machine (not a remote address such as s3://), is
/// writable, and has no TensorBoard event file yet.
void check_events_folder(const std::string& folder);

/// Throws InputError if `folder`, to which TensorBoard events are to be written, is inside a folder
/// with results of the run. root: the run's folder.
void check_apart_from_run(const std::string& folder, const std::filesystem::path& root);

}  // namespace cudp
