#pragma once
// The functions of MPI that ranks need. The MPI library is opened at run time, when it is first
// needed. So the program is built without mpi.h, and starts on machines without MPI.
//
// MPI libraries have one of two binary interfaces. Open MPI's handles are addresses of objects in
// the library. The handles of MPICH are numbers. MVAPICH and the MPI libraries of Intel and Cray
// have the interface of MPICH. tests/runtime/ranks/mpi_library_test.cpp compares the constants and
// types below with an installed mpi.h.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/lazy_library.hpp"

namespace cudp {

struct OpenMpi {
  using Handle = void*;
  struct Status {
    int source, tag, error, cancelled;
    std::size_t count;
  };
  static constexpr int kAnySource = -1;
  static constexpr int kSharedMemory = 0;        // MPI_COMM_TYPE_SHARED
  static constexpr std::intptr_t kInPlace = 1;   // MPI_IN_PLACE
  static constexpr std::intptr_t kNoStatus = 0;  // MPI_STATUS_IGNORE
  static constexpr std::size_t kMaxVersion = 256;

  explicit OpenMpi(const LazyLibrary& library)
      : world(library.find("ompi_mpi_comm_world")),
        no_communicator(library.find("ompi_mpi_comm_null")),
        no_request(library.find("ompi_request_null")),
        no_info(library.find("ompi_mpi_info_null")),
        byte(library.find("ompi_mpi_byte")),
        integer(library.find("ompi_mpi_int")),
        uint64(library.find("ompi_mpi_uint64_t")),
        sum(library.find("ompi_mpi_op_sum")),
        min(library.find("ompi_mpi_op_min")) {}

  Handle world, no_communicator, no_request, no_info, byte, integer, uint64, sum, min;
};

struct Mpich {
  using Handle = int;
  struct Status {
    int count_low, count_high_and_cancelled, source, tag, error;
  };
  static constexpr int kAnySource = -2;
  static constexpr int kSharedMemory = 1;
  static constexpr std::intptr_t kInPlace = -1;
  static constexpr std::intptr_t kNoStatus = 1;
  static constexpr std::size_t kMaxVersion = 8192;

  explicit Mpich(const LazyLibrary&) {}

  Handle world = 0x44000000;
  Handle no_communicator = 0x04000000;
  Handle no_request = 0x2c000000;
  Handle no_info = 0x1c000000;
  Handle byte = 0x4c00010d;
  Handle integer = 0x4c000405;
  Handle uint64 = 0x4c00083e;
  Handle sum = 0x58000003;
  Handle min = 0x58000002;
};

/// The functions and handles of an MPI library. Abi: constants and types of its binary interface;
/// there is one for Open MPI and one for MPICH.
template <class Abi>
struct MpiFunctions : Abi {
  using Handle = typename Abi::Handle;
  using Status = typename Abi::Status;

  explicit MpiFunctions(const LazyLibrary& library)
      : Abi(library),
        init_thread(library.find("MPI_Init_thread")),
        finalize(library.find("MPI_Finalize")),
        abort(library.find("MPI_Abort")),
        comm_rank(library.find("MPI_Comm_rank")),
        comm_size(library.find("MPI_Comm_size")),
        comm_split_type(library.find("MPI_Comm_split_type")),
        comm_free(library.find("MPI_Comm_free")),
        allgather(library.find("MPI_Allgather")),
        iallgather(library.find("MPI_Iallgather")),
        iallreduce(library.find("MPI_Iallreduce")),
        ibcast(library.find("MPI_Ibcast")),
        igatherv(library.find("MPI_Igatherv")),
        isend(library.find("MPI_Isend")),
        iprobe(library.find("MPI_Iprobe")),
        recv(library.find("MPI_Recv")),
        test(library.find("MPI_Test")) {}

  // Both ABIs define these pointers as whole numbers.
  // NOLINTBEGIN(performance-no-int-to-ptr)
  static void* in_place() { return reinterpret_cast<void*>(Abi::kInPlace); }
  static Status* no_status() { return reinterpret_cast<Status*>(Abi::kNoStatus); }
  // NOLINTEND(performance-no-int-to-ptr)

  static constexpr int kFunneled = 1;  // MPI_THREAD_FUNNELED

  int (*init_thread)(int*, char***, int, int*);
  int (*finalize)();
  int (*abort)(Handle, int);
  int (*comm_rank)(Handle, int*);
  int (*comm_size)(Handle, int*);
  int (*comm_split_type)(Handle, int, int, Handle, Handle*);
  int (*comm_free)(Handle*);
  int (*allgather)(const void*, int, Handle, void*, int, Handle, Handle);
  int (*iallgather)(const void*, int, Handle, void*, int, Handle, Handle, Handle*);
  int (*iallreduce)(const void*, void*, int, Handle, Handle, Handle, Handle*);
  int (*ibcast)(void*, int, Handle, int, Handle, Handle*);
  int (*igatherv)(const void*, int, Handle, void*, const int*, const int*, Handle, int, Handle,
                  Handle*);
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*);
  int (*iprobe)(int, int, Handle, int*, Status*);
  int (*recv)(void*, int, Handle, int, int, Handle, Status*);
  int (*test)(Handle*, int*, Status*);
};

/// The MPI library that this process uses, or the reason why there is none.
struct FoundMpi {
  std::unique_ptr<LazyLibrary> library;  ///< null if no library was found
  bool is_open_mpi = false;
  /// Text in which the library states its name and version, e.g. "Open MPI v4.1.4".
  std::string version;
  std::string missing;  ///< reason why no library was found
};

/// Opens an MPI library and returns it: the file that the environment variable CUDP_MPI_LIBRARY
/// names, if it is set; otherwise the library whose launcher started this process, if the
/// environment shows which; otherwise Open MPI or, if that is missing, MPICH. Later calls return
/// the same result.
const FoundMpi& found_mpi();

}  // namespace cudp
