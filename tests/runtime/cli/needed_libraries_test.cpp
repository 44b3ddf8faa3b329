// The shared libraries that the program states it needs: the C library's alone.
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <elf.h>
#include <gtest/gtest.h>

#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

/// A program's ELF file. Every read is checked against its size.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }

  template <class T>
  T at(std::size_t offset) const {
    T value{};
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof value)
      throw std::runtime_error("an ELF file that is cut short");
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  /// Returns the names of the libraries that the dynamic section lists as needed.
  std::set<std::string> needed() const {
    const auto header = at<Elf64_Ehdr>(0);
    std::set<std::string> names;
    for (int i = 0; i < header.e_shnum; ++i) {
      const auto section = this->section(header, static_cast<std::size_t>(i));
      if (section.sh_type != SHT_DYNAMIC) continue;
      const Elf64_Shdr strings = this->section(header, section.sh_link);
      for (std::size_t at_byte = 0; at_byte < section.sh_size; at_byte += sizeof(Elf64_Dyn)) {
        const auto entry = at<Elf64_Dyn>(section.sh_offset + at_byte);
        if (entry.d_tag == DT_NEEDED)
          names.insert(bytes_.data() + strings.sh_offset + entry.d_un.d_val);
      }
    }
    return names;
  }

 private:
  Elf64_Shdr section(const Elf64_Ehdr& header, std::size_t i) const {
    return at<Elf64_Shdr>(header.e_shoff + i * header.e_shentsize);
  }

  std::string bytes_;
};

TEST(NeededLibraries, AreTheCLibrarysAlone) {
#ifdef CUDP_SANITIZED
  GTEST_SKIP() << "sanitizers are shared libraries";
#endif
  const std::set<std::string> allowed = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2",
                                         "ld-linux-aarch64.so.1",
                                         // parts of the C library before its version 2.34
                                         "libdl.so.2", "libpthread.so.0", "librt.so.1"};
  const std::set<std::string> needed = ElfFile(cudp_binary()).needed();
  EXPECT_TRUE(needed.contains("libc.so.6"));
  for (const std::string& name : needed) EXPECT_TRUE(allowed.contains(name)) << name;
}

}  // namespace
}  // namespace cudp
