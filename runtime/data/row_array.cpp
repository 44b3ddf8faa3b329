#include "runtime/data/row_array.hpp"

#include <cerrno>
#include <new>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>

#include "runtime/base/error.hpp"
#include "runtime/data/row_file.hpp"

namespace cudp {

void* RowMemory::allocate(std::size_t bytes) const {
  if (!in_file(bytes)) return ::operator new(bytes);
  const auto refuse = [&](int error) {
    throw Error("numbers of the rows cannot be written to a file in " + folder_->string() + ": " +
                std::generic_category().message(error));
  };
  const FileDescriptor file = unnamed_file(*folder_, "a table");
  // Space on the disk is taken now: a mapped page without space would end the program.
  if (const int error = ::posix_fallocate(file.number(), 0, static_cast<off_t>(bytes)); error != 0)
    refuse(error);
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (mapped == MAP_FAILED) refuse(errno);
  return mapped;
}

void RowMemory::release(void* memory, std::size_t bytes) const {
  if (in_file(bytes))
    ::munmap(memory, bytes);
  else
    ::operator delete(memory);
}

}  // namespace cudp
