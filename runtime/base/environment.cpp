#include "runtime/base/environment.hpp"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace cudp {
namespace {

std::mutex kept_mutex;

/// The copy that keep_environment() made; null if there is none. Use it with kept_mutex locked.
std::shared_ptr<const Environment>& kept_environment() {
  static std::shared_ptr<const Environment> kept;
  return kept;
}

}  // namespace

Environment::Environment() {
  for (char** next = environ; next != nullptr && *next != nullptr; ++next)
    variables_.emplace_back(*next);
}

std::string Environment::find_program(const std::string& name) const {
  constexpr std::string_view kPath = "PATH=";
  std::string_view folders = "/bin:/usr/bin";  // without PATH
  for (const std::string_view variable : variables_)
    if (variable.starts_with(kPath)) folders = variable.substr(kPath.size());
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string_view folder = folders.substr(at, end - at);
    const std::string path = std::string(folder.empty() ? "." : folder) + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
    at = end + 1;
  }
  return "";
}

std::vector<char*> Environment::variables() const {
  std::vector<char*> pointers;
  pointers.reserve(variables_.size() + 1);
  for (const std::string& variable : variables_)
    pointers.push_back(const_cast<char*>(variable.c_str()));  // exec() does not change them
  pointers.push_back(nullptr);
  return pointers;
}

std::shared_ptr<const Environment> current_environment() {
  const std::lock_guard lock(kept_mutex);
  if (kept_environment() != nullptr) return kept_environment();
  return std::make_shared<const Environment>();
}

void keep_environment() {
  auto copy = std::make_shared<const Environment>();
  const std::lock_guard lock(kept_mutex);
  kept_environment() = std::move(copy);
}

}  // namespace cudp
