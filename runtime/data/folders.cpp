#include "runtime/data/folders.hpp"

#include <system_error>

#include "runtime/data/bytes.hpp"

namespace cudp {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

fs::path find_file(const fs::path& folder, const std::string& stem) {
  for (const char* ending : {"", ".gz", ".xz"}) {
    fs::path path = folder / (stem + ending);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
  }
  return {};
}

fs::path require_file(const fs::path& folder, const std::vector<std::string>& stems) {
  std::string names;
  for (const std::string& stem : stems) {
    fs::path path = find_file(folder, stem);
    if (!path.empty()) return path;
    names.append(names.empty() ? "" : " or ").append(stem);
  }
  bad_input(folder.string(), "", names + ", plain, .gz or .xz", "no such file");
}

std::string set_name_of(const fs::path& path) {
  fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  for (const char* ending : {".gz", ".xz", ".csv", ".tsv", ".npy", ".npz"})
    if (name.extension() == ending) name.replace_extension();
  return name.string();
}

void check_apart(const fs::path& test, const std::vector<fs::path>& train) {
  for (const fs::path& file : train) {
    std::error_code ignored;                  // a missing file is refused when it is read
    if (fs::equivalent(test, file, ignored))  // compares device and inode
      bad_input(test.string(), "", "test rows in a file of their own",
                "the file of the training rows, " + file.string());
  }
}

fs::path tuning_of(const fs::path& path) {
  std::error_code error;
  for (fs::path at = fs::weakly_canonical(path, error); at.has_relative_path();
       at = at.parent_path()) {
    const fs::path owner = at.parent_path();
    if (at.filename() == "runs" && owner.filename() == "private" &&
        fs::exists(owner / "tuning.json", error))
      return owner.parent_path();
  }
  return {};
}

std::string found_for_run(const fs::path& path) {
  std::error_code none;
  const bool is_sweep = fs::exists(path / "private" / "sweep.toml", none) ||
                        fs::exists(path / "release" / "sweep.json", none);
  return is_sweep ? "a sweep, whose runs are in " + (path / "runs").string() : "none";
}

}  // namespace cudp
