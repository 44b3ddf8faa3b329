#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cudp {

/// What an exported file repeats of the release that it was made from, beside the model.
struct ExportNote {
  /// Why the run must not be published; empty if it may be, or if nothing lies beside the model.
  std::vector<std::string> not_for_release;
};

/// Reads the note of a model.safetensors from the files beside it: privacy.json and
/// NOT-FOR-RELEASE.txt. Throws InputError if the model is in a run's private folder, from which
/// nothing is exported.
ExportNote export_note(const std::filesystem::path& model);

}  // namespace cudp
