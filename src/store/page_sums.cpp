// SPDX-License-Identifier: Apache-2.0
#include "store/page_sums.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace strata::store {
namespace {

// What SQLite holds as the open file. SQLite's own file for it lies directly behind. SQLite aligns it to 8 bytes.
struct SummedFile {
  sqlite3_file base;      // first, as SQLite sees this
  std::int64_t page = 0;  // bytes of a page with a sum; 0: no page is known to have one
};
static_assert(alignof(SummedFile) <= 8 && sizeof(SummedFile) % 8 == 0);

sqlite3_file* real_of(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<SummedFile*>(file) + 1);
}

thread_local std::int64_t wrong_page = 0;

using Sum = std::array<unsigned char, kSumBytes>;

// Of a page without its last bytes. Its number is in it, so that a page in another's place is wrong as well.
Sum sum_of(std::int64_t number, const unsigned char* page, int bytes) {
  thread_local std::vector<unsigned char> text;
  text.resize(sizeof number);
  for (std::size_t i = 0; i < sizeof number; ++i) text[i] = static_cast<unsigned char>(number >> (8 * i));
  text.insert(text.end(), page, page + bytes - kSumBytes);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
  Sum sum;
  std::memcpy(sum.data(), digest.data(), sum.size());
  return sum;
}

// The file's header (https://www.sqlite.org/fileformat.html): bytes 16 and 17 are the size of a page, byte 20 counts
// the reserved ones.
int summed_page(const unsigned char* header) {
  if (std::memcmp(header, "SQLite format 3", 16) != 0 || header[20] != kSumBytes) return 0;
  const int size = header[16] * 256 + header[17];
  return size == 1 ? 65536 : size;
}
constexpr int kHeaderBytes = 24;

bool is_page(const SummedFile& file, int bytes, sqlite3_int64 offset) {
  return file.page > 0 && bytes == file.page && offset % file.page == 0;
}

int read_page(sqlite3_file* file, void* into, int bytes, sqlite3_int64 offset) {
  auto& own = *reinterpret_cast<SummedFile*>(file);
  const int code = real_of(file)->pMethods->xRead(real_of(file), into, bytes, offset);
  if (code != SQLITE_OK) return code;
  const auto* page = static_cast<const unsigned char*>(into);
  if (own.page == 0 && offset == 0 && bytes >= kHeaderBytes) own.page = summed_page(page);
  if (!is_page(own, bytes, offset)) return code;
  const std::int64_t number = offset / bytes + 1;
  const auto sum = sum_of(number, page, bytes);
  if (std::memcmp(sum.data(), page + bytes - kSumBytes, kSumBytes) == 0) return code;
  wrong_page = number;
  return SQLITE_IOERR_DATA;
}

int write_page(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  auto& own = *reinterpret_cast<SummedFile*>(file);
  const auto* page = static_cast<const unsigned char*>(from);
  if (offset == 0 && bytes >= 512) own.page = summed_page(page);  // a new file, or one that VACUUM writes anew
  if (!is_page(own, bytes, offset)) return real_of(file)->pMethods->xWrite(real_of(file), from, bytes, offset);
  thread_local std::vector<unsigned char> summed;
  summed.assign(page, page + bytes);
  const auto sum = sum_of(offset / bytes + 1, page, bytes);
  std::memcpy(summed.data() + bytes - kSumBytes, sum.data(), sum.size());
  return real_of(file)->pMethods->xWrite(real_of(file), summed.data(), bytes, offset);
}

// Newer SQLites read parts of a page where a file allows it; a sum needs the whole.
int characteristics(sqlite3_file* file) {
  constexpr int parts_can_be_read = 0x00008000;  // SQLITE_IOCAP_SUBPAGE_READ
  return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file)) & ~parts_can_be_read;
}

// Everything else is SQLite's own file's business. No mapped pages: they would be seen without their sums.
sqlite3_io_methods methods_of_summed() {
  sqlite3_io_methods own{};
  own.iVersion = 3;
  own.xClose = [](sqlite3_file* f) { return real_of(f)->pMethods->xClose(real_of(f)); };
  own.xRead = read_page;
  own.xWrite = write_page;
  own.xTruncate = [](sqlite3_file* f, sqlite3_int64 n) { return real_of(f)->pMethods->xTruncate(real_of(f), n); };
  own.xSync = [](sqlite3_file* f, int flags) { return real_of(f)->pMethods->xSync(real_of(f), flags); };
  own.xFileSize = [](sqlite3_file* f, sqlite3_int64* n) { return real_of(f)->pMethods->xFileSize(real_of(f), n); };
  own.xLock = [](sqlite3_file* f, int lock) { return real_of(f)->pMethods->xLock(real_of(f), lock); };
  own.xUnlock = [](sqlite3_file* f, int lock) { return real_of(f)->pMethods->xUnlock(real_of(f), lock); };
  own.xCheckReservedLock = [](sqlite3_file* f, int* out) {
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
  };
  own.xFileControl = [](sqlite3_file* f, int op, void* argument) {
    return real_of(f)->pMethods->xFileControl(real_of(f), op, argument);
  };
  own.xSectorSize = [](sqlite3_file* f) { return real_of(f)->pMethods->xSectorSize(real_of(f)); };
  own.xDeviceCharacteristics = characteristics;
  own.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
  };
  own.xShmLock = [](sqlite3_file* f, int offset, int n, int flags) {
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
  };
  own.xShmBarrier = [](sqlite3_file* f) { real_of(f)->pMethods->xShmBarrier(real_of(f)); };
  own.xShmUnmap = [](sqlite3_file* f, int remove) { return real_of(f)->pMethods->xShmUnmap(real_of(f), remove); };
  own.xFetch = [](sqlite3_file*, sqlite3_int64, int, void** out) {
    *out = nullptr;
    return SQLITE_OK;
  };
  own.xUnfetch = [](sqlite3_file*, sqlite3_int64, void*) { return SQLITE_OK; };
  return own;
}
const sqlite3_io_methods kSummed = methods_of_summed();

// Only the database itself has pages with sums; its journals are checked by SQLite.
int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  auto* real_vfs = static_cast<sqlite3_vfs*>(vfs->pAppData);
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return real_vfs->xOpen(real_vfs, name, file, flags, flags_out);
  auto* own = new (file) SummedFile{};
  const int code = real_vfs->xOpen(real_vfs, name, real_of(file), flags, flags_out);
  if (code != SQLITE_OK) {
    if (real_of(file)->pMethods) real_of(file)->pMethods->xClose(real_of(file));
    return code;
  }
  own->base.pMethods = &kSummed;
  std::array<unsigned char, kHeaderBytes> header{};
  if (real_of(file)->pMethods->xRead(real_of(file), header.data(), kHeaderBytes, 0) == SQLITE_OK)
    own->page = summed_page(header.data());
  return SQLITE_OK;
}

sqlite3_vfs* real_of(sqlite3_vfs* vfs) {
  return static_cast<sqlite3_vfs*>(vfs->pAppData);
}

sqlite3_vfs make_vfs(sqlite3_vfs* real) {
  sqlite3_vfs own{};
  own.iVersion = 1;
  own.szOsFile = static_cast<int>(sizeof(SummedFile)) + real->szOsFile;
  own.mxPathname = real->mxPathname;
  own.zName = "strata";
  own.pAppData = real;
  own.xOpen = open_file;
  own.xDelete = [](sqlite3_vfs* v, const char* n, int sync) { return real_of(v)->xDelete(real_of(v), n, sync); };
  own.xAccess = [](sqlite3_vfs* v, const char* n, int flags, int* out) {
    return real_of(v)->xAccess(real_of(v), n, flags, out);
  };
  own.xFullPathname = [](sqlite3_vfs* v, const char* n, int size, char* out) {
    return real_of(v)->xFullPathname(real_of(v), n, size, out);
  };
  own.xRandomness = [](sqlite3_vfs* v, int n, char* out) { return real_of(v)->xRandomness(real_of(v), n, out); };
  own.xSleep = [](sqlite3_vfs* v, int us) { return real_of(v)->xSleep(real_of(v), us); };
  own.xCurrentTime = [](sqlite3_vfs* v, double* out) { return real_of(v)->xCurrentTime(real_of(v), out); };
  own.xGetLastError = [](sqlite3_vfs* v, int n, char* out) { return real_of(v)->xGetLastError(real_of(v), n, out); };
  return own;  // no shared libraries: xDlOpen and its like stay empty
}

}  // namespace

const char* page_sums_vfs() {
  static sqlite3_vfs* const vfs = []() -> sqlite3_vfs* {
    sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
    if (real == nullptr) return nullptr;
    static sqlite3_vfs own = make_vfs(real);
    return sqlite3_vfs_register(&own, 0) == SQLITE_OK ? &own : nullptr;
  }();
  return vfs ? vfs->zName : nullptr;
}

bool has_page_sums(sqlite3* handle) {
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || file == nullptr)
    return false;
  return file->pMethods == &kSummed && reinterpret_cast<SummedFile*>(file)->page > 0;
}

std::int64_t last_wrong_page() {
  return wrong_page;
}

}  // namespace strata::store
