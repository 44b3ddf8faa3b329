#include "runtime/run/folder.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <future>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/training/public_weights.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

void make_folder(const fs::path& path, fs::perms mode) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, mode, error);
  if (error) throw Error(path.string() + ": cannot make the folder: " + error.message());
}

}  // namespace

void RunFolder::sync_all() {
  auto released = std::async([&] { sync_files(root_ / "release"); });
  sync_files(root_ / "private");
  released.get();
  sync_folder(root_);
  sync_ = Sync::yes;
}

ReservedFolder reserve_run_folder(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &utc);
  const fs::path first = fs::path("runs") / (name + "-" + text.data());
  ReservedFolder reserved{.path = first};
  fs::path& path = reserved.path;
  for (int n = 2;;) {
    // Another job that ends with an error may remove an empty runs/ in the meantime.
    std::error_code error;
    if (fs::create_directories(path.parent_path(), error)) reserved.made_parent = true;
    if (::mkdir(path.c_str(), 0755) == 0) return reserved;
    if (errno == EEXIST)
      path = first.string() + "-" + std::to_string(n++);
    else if (errno != ENOENT || error)
      throw Error(path.string() + ": cannot make the run folder: " + std::strerror(errno));
  }
}

namespace {

/// Throws InputError if the path begins with the scheme of a URL, such as s3://, because it would
/// be taken for the name of a folder on this machine.
void check_local(const std::string& path) {
  const std::size_t end = path.find("://");
  if (end == std::string::npos || end == 0) return;
  const bool scheme = std::ranges::all_of(path.substr(0, end), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
  });
  if (scheme)
    throw InputError("--out: expected a folder of this machine, found " + path +
                     "; mount the storage, or copy the run folder there afterwards");
}

}  // namespace

void check_free(const fs::path& path) {
  check_local(path.string());
  std::error_code error;
  if (!fs::exists(path, error)) return;
  if (fs::is_directory(path, error) && fs::is_empty(path, error)) return;
  const bool run = fs::exists(path / "private", error) || fs::exists(path / "release", error);
  throw InputError("--out " + path.string() + ": expected a new or an empty folder, found " +
                   (run ? "a run (--resume continues it)" : "something else"));
}

void check_not_of_tuning(const fs::path& path) {
  const std::string tuning = tuning_of(path).string();
  if (!tuning.empty())
    throw InputError(path.string() +
                     ": expected a run, found a training of a tuning, which alone continues it and "
                     "releases the best one: cudp tune --resume " +
                     tuning);
}

NewRunFolder::NewRunFolder(fs::path path) : path_(std::move(path)) {
  // "runs/a/" and "runs/a" name the same folder.
  if (!path_.has_filename()) path_ = path_.parent_path();
  check_free(path_);
  temporary_ = path_.parent_path() / std::string(".")
                                         .append(path_.filename().string())
                                         .append(".new-")
                                         .append(std::to_string(::getpid()));
  const FilesInChange lock;
  unfinished_.emplace(temporary_);
  make_folder(temporary_ / "release", fs::perms(0755));
  make_folder(temporary_ / "private", fs::perms(0700));
}

NewRunFolder::NewRunFolder(ReservedFolder reserved) : NewRunFolder(reserved.path) {
  reserved_ = std::move(reserved);
  unfinished_path_.emplace(reserved_.path, UnfinishedFile::Remove::if_empty);
  if (reserved_.made_parent)
    unfinished_parent_.emplace(reserved_.path.parent_path(), UnfinishedFile::Remove::if_empty);
}

NewRunFolder::~NewRunFolder() {
  std::error_code ignored;
  if (temporary_.empty()) return;
  fs::remove_all(temporary_, ignored);
  if (reserved_.path.empty()) return;
  ::rmdir(path_.c_str());
  if (reserved_.made_parent) ::rmdir(path_.parent_path().c_str());  // fails if it holds other runs
}

RunFolder NewRunFolder::publish(Sync sync) {
  if (sync == Sync::yes) folder().sync_all();
  const FilesInChange lock;
  std::error_code error;
  fs::rename(temporary_, path_, error);  // replaces an empty folder
  if (error) throw Error(path_.string() + ": cannot make the run folder: " + error.message());
  temporary_.clear();
  for (auto* const mark : {&unfinished_, &unfinished_path_, &unfinished_parent_}) mark->reset();
  if (sync == Sync::yes) sync_folder(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
  return RunFolder(path_, sync);
}

}  // namespace cudp
