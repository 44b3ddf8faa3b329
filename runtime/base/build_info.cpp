#include "runtime/base/build_info.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <gnu/libc-version.h>
#include <link.h>

#include "build_info_values.hpp"

namespace cudp {
namespace {

/// Returns the GNU build id, in hexadecimal, from the notes of an ELF segment; "" if there is none.
/// A note is a header, a name and a description; the name and the description are each padded to a
/// multiple of four bytes. notes, size: address and size of the notes [bytes].
std::string build_id_in(const char* notes, std::size_t size) {
  const auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof header);
    const char* const name = notes + sizeof header;
    const char* const text = name + padded(header.n_namesz);
    const std::size_t whole = sizeof header + padded(header.n_namesz) + padded(header.n_descsz);
    if (whole > size) break;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(name, "GNU", 4) == 0) {
      std::string digits;
      for (std::size_t i = 0; i < header.n_descsz; ++i) {
        std::array<char, 3> byte{};
        std::snprintf(byte.data(), byte.size(), "%02x", static_cast<unsigned char>(text[i]));
        digits += byte.data();
      }
      return digits;
    }
    notes += whole;
    size -= whole;
  }
  return "";
}

/// Returns whether `object`, one of the objects that the dynamic loader has loaded, contains this
/// function. Such an object is the program itself, or a shared library that cudp is linked into.
bool is_own(const dl_phdr_info& object) {
  const auto code = reinterpret_cast<std::uintptr_t>(&is_own);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    const std::uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && code >= begin && code - begin < segment.p_memsz) return true;
  }
  return false;
}

/// Callback of dl_iterate_phdr. If `object` contains this code, stores its build id in the text to
/// which `out` points, and returns 1, which ends the iteration.
int find_build_id(dl_phdr_info* object, std::size_t, void* out) {
  if (!is_own(*object)) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto address = object->dlpi_addr + segment.p_vaddr;
    // The loader gives addresses as numbers. NOLINTNEXTLINE(performance-no-int-to-ptr)
    const std::string id = build_id_in(reinterpret_cast<const char*>(address), segment.p_memsz);
    if (!id.empty()) *static_cast<std::string*>(out) = id;
  }
  return 1;
}

}  // namespace

BuildInfo build_info() { return {CUDP_VERSION, CUDP_COMMIT, CUDP_COMPILER}; }

std::string program_id() {
  std::string id;
  ::dl_iterate_phdr(find_build_id, &id);
  if (id.empty()) id = std::string(CUDP_VERSION " " CUDP_COMMIT " " CUDP_COMPILER);
  id += std::string(", glibc ") + ::gnu_get_libc_version();
#if defined(__x86_64__)
  // The C library rounds logarithms and other functions differently if it has fused multiply-adds.
  if (__builtin_cpu_supports("fma")) id += " with fma";
#endif
  return id;
}

}  // namespace cudp
