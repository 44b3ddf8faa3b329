// Rows that a disk delivers each second if they lie anywhere in a file: what bounds a training on a
// file that is larger than memory.
//
//     disk_reads FILE ROW_BYTES [ROWS [AT_ONCE]]
//
// reads the pages of random rows past the system's cache, ROWS in all (200,000), always AT_ONCE of
// them under way (256), and prints rows per second. scripts/check.sh memory compares trainings with
// it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr std::uint64_t kPage = 4096;

/// Returns a result that is not negative. Throws std::system_error with errno otherwise.
long checked(long result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

double rows_per_second(const std::string& path, std::uint64_t row_bytes, std::size_t rows,
                       std::size_t at_once) {
  const int file = static_cast<int>(checked(::open(path.c_str(), O_RDONLY | O_DIRECT), "open"));
  struct stat about {};
  checked(::fstat(file, &about), "fstat");
  const std::uint64_t count = static_cast<std::uint64_t>(about.st_size) / row_bytes;
  const std::uint64_t slot = (row_bytes / kPage + 2) * kPage;
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(kPage, at_once * slot), std::free);
  aio_context_t context = 0;
  checked(::syscall(SYS_io_setup, at_once, &context), "io_setup");
  std::vector<iocb> requests(at_once);
  std::vector<io_event> done(at_once);
  std::vector<std::size_t> idle(at_once);
  std::iota(idle.begin(), idle.end(), std::size_t{0});
  std::mt19937_64 random(std::random_device{}());
  std::vector<iocb*> next;
  std::size_t begun = 0, ended = 0;
  const auto start = std::chrono::steady_clock::now();
  while (ended < rows) {
    next.clear();
    for (; begun < rows && !idle.empty(); ++begun) {
      const std::size_t k = idle.back();
      idle.pop_back();
      const std::uint64_t at = random() % count * row_bytes;
      const std::uint64_t page = at / kPage * kPage;
      requests[k] = {};
      requests[k].aio_fildes = static_cast<std::uint32_t>(file);
      requests[k].aio_lio_opcode = IOCB_CMD_PREAD;
      requests[k].aio_buf = reinterpret_cast<std::uint64_t>(memory.get()) + k * slot;
      requests[k].aio_nbytes = (at + row_bytes - page + kPage - 1) / kPage * kPage;
      requests[k].aio_offset = static_cast<std::int64_t>(page);
      requests[k].aio_data = k;
      next.push_back(&requests[k]);
    }
    for (std::size_t n = 0; n < next.size();)
      n += static_cast<std::size_t>(checked(
          ::syscall(SYS_io_submit, context, next.size() - n, next.data() + n), "io_submit"));
    const auto wanted = static_cast<long>(std::min(at_once / 8 + 1, rows - ended));
    const long n =
        checked(::syscall(SYS_io_getevents, context, wanted, at_once, done.data(), nullptr),
                "io_getevents");
    for (long i = 0; i < n; ++i) {
      checked(static_cast<long>(done[static_cast<std::size_t>(i)].res), "read");
      idle.push_back(done[static_cast<std::size_t>(i)].data);
    }
    ended += static_cast<std::size_t>(n);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return static_cast<double>(rows) / spent.count();
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: disk_reads FILE ROW_BYTES [ROWS [AT_ONCE]]\n");
    return 2;
  }
  const auto number = [&](int i, std::uint64_t otherwise) {
    return i < count ? std::strtoull(words[i], nullptr, 10) : otherwise;
  };
  try {
    std::printf("%.0f\n",
                rows_per_second(words[1], number(2, 0), number(3, 200'000), number(4, 256)));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "disk_reads: %s: %s\n", words[1], e.what());
    return 1;
  }
}
