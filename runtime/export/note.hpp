#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cudp {

/// Warnings about a released model that a file exported from it (ONNX, Python) must repeat.
struct ExportNote {
  /// Reasons why the run must not be published. Empty if it may be, or if there is no certificate
  /// in the model's folder.
  std::vector<std::string> not_for_release;
};

/// Reads the warnings for a model.safetensors from privacy.json and NOT-FOR-RELEASE.txt in its
/// folder. Throws InputError if the model is in a run's private folder, because such a model must
/// not be exported.
ExportNote export_note(const std::filesystem::path& model);

}  // namespace cudp
