#include "runtime/ranks/mpi_library.hpp"

#include <cstdlib>
#include <vector>

namespace cudp {
namespace {

/// Returns file names under which the dynamic loader may find an MPI library, the most likely
/// first.
std::vector<std::string> candidates() {
  if (const char* const file = std::getenv("CUDP_MPI_LIBRARY"); file != nullptr) return {file};
  std::vector<std::string> open_mpi = {"libmpi.so.40"};
  const std::vector<std::string> mpich = {"libmpi.so.12", "libmpich.so.12"};
  const auto has = [](const char* name) { return std::getenv(name) != nullptr; };
  if (has("OMPI_COMM_WORLD_SIZE")) return open_mpi;
  const bool by_mpich = has("PMI_RANK") && !has("PMIX_RANK");
  std::vector<std::string> all = by_mpich ? mpich : open_mpi;
  const std::vector<std::string>& others = by_mpich ? open_mpi : mpich;
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

/// Returns the name and version of an MPI library: the start of the text of
/// MPI_Get_library_version.
template <class Abi>
std::string version_of(const LazyLibrary& library) {
  int (*const get_version)(char*, int*) = library.find("MPI_Get_library_version");
  std::string text(Abi::kMaxVersion, '\0');
  int length = 0;
  get_version(text.data(), &length);
  text.resize(text.find('\0'));
  text.resize(std::min(text.find_first_of(",\n"), text.size()));
  for (char& c : text)
    if (c == '\t') c = ' ';
  return text;
}

FoundMpi find_mpi() {
  FoundMpi found;
  for (const std::string& name : candidates()) {
    try {
      // RTLD_GLOBAL makes the library's symbols visible to the plugins that Open MPI loads.
      auto library = std::make_unique<LazyLibrary>("MPI", name, RTLD_GLOBAL);
      found.is_open_mpi = library->has("ompi_mpi_comm_world");
      found.version =
          found.is_open_mpi ? version_of<OpenMpi>(*library) : version_of<Mpich>(*library);
      const bool is_known = found.is_open_mpi || found.version.find("MPICH") != std::string::npos ||
                            found.version.find("MVAPICH") != std::string::npos ||
                            found.version.find("Intel") != std::string::npos;
      if (!is_known)
        throw Error("MPI: " + name + ": expected Open MPI or MPICH, found " + found.version);
      found.library = std::move(library);
      return found;
    } catch (const Error& e) {
      found.missing += (found.missing.empty() ? "" : "; ") + std::string(e.what());
    }
  }
  return found;
}

}  // namespace

const FoundMpi& found_mpi() {
  static const FoundMpi found = find_mpi();
  return found;
}

}  // namespace cudp
