#include "runtime/export/note.hpp"

#include <system_error>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"

namespace fs = std::filesystem;

namespace cudp {

ExportNote export_note(const fs::path& model) {
  const fs::path folder = fs::absolute(model).parent_path();
  if (folder.filename() == "private")
    throw InputError(model.string() +
                     ": expected a released model, found one that was trained without privacy and "
                     "may show any training example: it is not exported");
  ExportNote note;
  std::error_code ignored;
  if (const fs::path certificate = folder / "privacy.json"; fs::exists(certificate, ignored)) {
    const auto j = nlohmann::json::parse(read_file(certificate), nullptr, false);
    if (!j.is_object() || !j.contains("for_release") || !j["for_release"].is_boolean())
      throw InputError(certificate.string() +
                       ": expected a certificate with for_release, found none");
    if (const auto reasons = j.find("not_for_release"); reasons != j.end() && reasons->is_array())
      for (const auto& reason : *reasons)
        if (reason.is_string()) note.not_for_release.push_back(reason.get<std::string>());
    if (!j["for_release"].get<bool>() && note.not_for_release.empty())
      note.not_for_release.emplace_back("its certificate says so");
  }
  constexpr const char* kNote = "NOT-FOR-RELEASE.txt";
  if (fs::exists(folder / kNote, ignored) && note.not_for_release.empty())
    note.not_for_release.push_back(std::string(kNote) + " is in the model's folder");
  return note;
}

}  // namespace cudp
