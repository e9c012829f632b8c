// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A wait is idle only if its caller says so: the loop in which a worker waits for work. The
 * primitive says nothing. A futex, a condition variable, a semaphore and a sleep are what locks,
 * queues, pools and timers are all made of: Java's monitors and CPython's locks and GIL wait in
 * pthread_cond_wait() and sem_wait(), as their thread pools do.
 *
 * So there are two tables. The first one maps the kernel function that called the scheduler to a
 * kind of system call. The second one is a list of rules, of which the first that fits decides. Its
 * order is: 1. waits that are known to be neither, where a later rule would say otherwise; 2.
 * locks, by functions that do nothing but acquire one;
 * 3. idle waits, by functions that do nothing but wait for work, or by a primitive and the loop
 * that called it; 4. primitives that are neither unless a caller says so;
 * 5. primitives that are locks where no caller says otherwise: semaphores;
 * 6. system calls that serve nothing but waiting for work: accept(), epoll_wait(), and the loops of
 * kernel threads.
 *
 * What no rule knows is plain. To take an idle wait for a plain one costs a box in a picture; to
 * take a lock for idle deletes it.
 */
#include "resolve/waits.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

/* What kind of system call the thread waits in, as bits. */
#define FUTEX  (1u << 0)
#define EPOLL  (1u << 1)
#define POLL   (1u << 2) /* poll, select */
#define URING  (1u << 3)
#define ACCEPT (1u << 4)
#define SLEEP  (1u << 5)
#define SIGNAL (1u << 6)
#define SUSPEND \
	(1u << 7) /* sigsuspend: collectors stop threads with it, shells wait for children */
#define RECEIVE	 (1u << 8) /* read and recv of pipes and sockets */
#define KTHREAD	 (1u << 9)
#define KMUTEX	 (1u << 10)
#define KRWSEM	 (1u << 11)
#define FILELOCK (1u << 12)
#define SYSVSEM	 (1u << 13)
#define JOURNAL	 (1u << 14)
#define UNKNOWN	 (1u << 15) /* there is no kernel stack */
#define OTHER	 0u	    /* none of these: no rule fits */
#define ANY	 UINT32_MAX

static const struct {
	const char *function;
	uint32_t call;
} calls[] = {
	{ "futex_*wait*", FUTEX },
	{ "__futex_wait*", FUTEX },
	{ "ep_poll", EPOLL },
	{ "do_epoll_*wait", EPOLL },
	{ "poll_schedule_timeout*", POLL },
	{ "do_sys_poll", POLL },
	{ "do_poll*", POLL },
	{ "do_select*", POLL },
	{ "io_cqring_wait*", URING },
	{ "inet_csk_accept", ACCEPT },
	{ "inet_csk_wait_for_connect", ACCEPT },
	{ "unix_accept", ACCEPT },
	{ "do_nanosleep", SLEEP },
	{ "hrtimer_nanosleep*", SLEEP },
	{ "*sys_pause", SIGNAL },
	{ "do_sigtimedwait*", SIGNAL },
	{ "signalfd_*", SIGNAL },
	{ "sigsuspend*", SUSPEND },
	{ "*pipe_read", RECEIVE },
	{ "unix_stream_data_wait", RECEIVE },
	{ "unix_stream_read_generic", RECEIVE },
	{ "sk_wait_data", RECEIVE },
	{ "wait_woken", RECEIVE },
	{ "__skb_wait_for_more_packets", RECEIVE },
	/* locks of the kernel */
	{ "__mutex_lock*", KMUTEX },
	{ "mutex_lock*", KMUTEX },
	{ "__down_common*", KMUTEX },
	{ "___down_common*", KMUTEX },
	{ "rt_mutex_*", KMUTEX },
	{ "__rt_mutex_*", KMUTEX },
	{ "rwsem_down_*", KRWSEM },
	{ "percpu_rwsem_wait*", KRWSEM },
	{ "__percpu_down_*", KRWSEM },
	{ "__lock_sock*", KMUTEX },
	{ "*_lock_inode_wait", FILELOCK },
	{ "locks_lock_inode_wait*", FILELOCK },
	{ "fcntl_setlk*", FILELOCK },
	{ "do_lock_file_wait*", FILELOCK },
	{ "*do_semtimedop", SYSVSEM },
	{ "wait_transaction_locked", JOURNAL },
	/* threads of the kernel, waiting for work */
	{ "worker_thread", KTHREAD },
	{ "rescuer_thread", KTHREAD },
	{ "kthread_worker_fn", KTHREAD },
	{ "kthreadd", KTHREAD },
	{ "smpboot_thread_fn", KTHREAD },
	{ "rcu_*", KTHREAD },
	{ "kswapd*", KTHREAD },
	{ "kcompactd*", KTHREAD },
	{ "khugepaged*", KTHREAD },
	{ "kjournald2", KTHREAD },
	{ "kauditd_thread", KTHREAD },
	{ "oom_reaper", KTHREAD },
	{ "watchdog", KTHREAD },
	{ "irq_thread*", KTHREAD },
	{ "irq_wait_for_interrupt", KTHREAD },
	{ "io_wq*_worker", KTHREAD },
	{ "ksm_scan_thread", KTHREAD },
	{ "psi_*worker*", KTHREAD },
	{ "hwrng_fillfn", KTHREAD },
	{ "scsi_error_handler", KTHREAD },
	{ "balloon*", KTHREAD },
	{ "*_kthread", KTHREAD },
};

/*
 * `frames` is a chain of callers, "callee < caller < its caller", each a name in which '*' stands
 * for any text. It fits wherever in the stack its frames stand next to each other. With '@' in
 * front it is matched with the functions of the interpreted language only, and begins at the
 * innermost of these. NULL: the system call is enough.
 */
struct rule {
	uint32_t class;
	const char *kind;
	uint32_t calls;
	const char *frames;
};

#define PLAIN(calls, frames)                       \
	{                                          \
		SB_WAIT_PLAIN, NULL, calls, frames \
	}
#define LOCK(kind, calls, frames)                 \
	{                                         \
		SB_WAIT_LOCK, kind, calls, frames \
	}
#define IDLE(kind, calls, frames)                 \
	{                                         \
		SB_WAIT_IDLE, kind, calls, frames \
	}

#define AQS "java.util.concurrent.locks.AbstractQueued*Synchronizer."

static const struct rule rules[] = {
	/* 1. These look like locks. A latch waits for events; VM threads, for what they asked
	 * for. */
	PLAIN(ANY, "java.util.concurrent.CountDownLatch.*wait*"),
	PLAIN(FUTEX, "VMThread::wait_until_executed*"),

	/* 2. Locks. Of the C library: */
	LOCK("mutex", FUTEX | UNKNOWN, "*pthread_mutex_*lock*"),
	LOCK("mutex", FUTEX | UNKNOWN, "*lll_lock_wait*"),
	LOCK("mutex", FUTEX | UNKNOWN, "*lll_lock_elision*"),
	LOCK("rwlock", FUTEX | UNKNOWN, "*pthread_rwlock_*lock*"),
	LOCK("malloc", FUTEX | UNKNOWN, "[libc.so.6+* < malloc"),
	LOCK("malloc", FUTEX | UNKNOWN, "[libc.so.6+* < free"),
	LOCK("malloc", FUTEX | UNKNOWN, "[libc.so.6+* < calloc"),
	LOCK("malloc", FUTEX | UNKNOWN, "[libc.so.6+* < realloc"),
	/* of languages and libraries: */
	LOCK("mutex", FUTEX | UNKNOWN, "*utex*::lock_contended*"),
	LOCK("rwlock", FUTEX | UNKNOWN, "*RwLock*::*_contended*"),
	LOCK("mutex", FUTEX | UNKNOWN, "*RawMutex*::lock_slow*"),
	LOCK("rwlock", FUTEX | UNKNOWN, "*RawRwLock*::lock_*_slow*"),
	LOCK("mutex", FUTEX | UNKNOWN, "absl::*Mutex::*LockSlow*"),
	LOCK("mutex", FUTEX | UNKNOWN, "runtime.lock2*"),
	LOCK("mutex", FUTEX | UNKNOWN, "sync.(*Mutex).*ock*"),
	LOCK("rwlock", FUTEX | UNKNOWN, "sync.(*RWMutex).*Lock*"),
	LOCK("mutex", FUTEX | UNKNOWN, "gomp_mutex_lock*"),
	LOCK("mutex", FUTEX | UNKNOWN, "GOMP_critical*start"),
	LOCK("mutex", FUTEX | UNKNOWN, "ethr_mutex_lock*"),
	LOCK("monitor", FUTEX | UNKNOWN, "AwareLock::Enter*"),
	LOCK("mutex", FUTEX | UNKNOWN, "CrstBase::Enter*"),
	LOCK("monitor", FUTEX | UNKNOWN, "mono_monitor_*enter*"),
	/* of Java: */
	LOCK("monitor", ANY, "ObjectMonitor::*nter*"),
	LOCK("monitor", ANY, "ObjectSynchronizer::*enter*"),
	LOCK("semaphore", ANY, AQS "*cquire* < java.util.concurrent.Semaphore.*"),
	LOCK("rwlock", ANY, AQS "*cquire* < java.util.concurrent.locks.ReentrantReadWriteLock$*"),
	LOCK("rwlock", ANY, "java.util.concurrent.locks.StampedLock.*cquire*"),
	LOCK("mutex", ANY, AQS "*cquire*"),
	/* of CPython: the GIL, and in stripped programs what leads to it */
	LOCK("gil", FUTEX | UNKNOWN, "take_gil*"),
	LOCK("gil", FUTEX | UNKNOWN, "drop_gil*"),
	LOCK("gil", FUTEX | UNKNOWN, "PyEval_RestoreThread"),
	LOCK("gil", FUTEX | UNKNOWN, "PyEval_AcquireThread"),
	LOCK("gil", FUTEX | UNKNOWN, "PyGILState_Ensure"),
	LOCK("gil", FUTEX | UNKNOWN, "pthread_cond_timedwait < [python*"),
	LOCK("gil", FUTEX | UNKNOWN, "pthread_cond_timedwait < [libpython*"),
	LOCK("mutex", FUTEX | UNKNOWN, "_PyMutex_Lock*"),
	LOCK("rwlock", FUTEX | UNKNOWN, "_PyRWMutex_*Lock"),
	/* of Ruby: its GVL has had four names */
	LOCK("mutex", ANY, "@Thread::Mutex#lock"),
	LOCK("mutex", ANY, "@Thread::Mutex#synchronize"),
	LOCK("mutex", ANY, "@Mutex#lock"),
	LOCK("mutex", ANY, "@Mutex#synchronize"),
	LOCK("mutex", ANY, "@Thread::Mutex#owned?"),
	LOCK("monitor", ANY, "@Monitor#enter"),
	LOCK("monitor", ANY, "@Monitor#synchronize"),
	LOCK("mutex", FUTEX | UNKNOWN, "*do_mutex_lock*"),
	LOCK("gvl", FUTEX | UNKNOWN, "thread_sched_to_running*"),
	LOCK("gvl", FUTEX | UNKNOWN, "thread_sched_wait_running_turn*"),
	LOCK("gvl", FUTEX | UNKNOWN, "*gvl_acquire*"),
	LOCK("gvl", FUTEX | UNKNOWN, "gvl_yield*"),
	LOCK("gvl", FUTEX | UNKNOWN, "rb_native_cond_wait < rb_threadptr_execute_interrupts"),
	LOCK("gvl", FUTEX | UNKNOWN, "pthread_cond_timedwait < rb_threadptr_execute_interrupts"),
	/* of databases: ProcSleep() waits with epoll, as PostgreSQL's idle backends do */
	LOCK("lwlock", ANY, "LWLock*"),
	LOCK("transaction", ANY, "ProcSleep"),
	LOCK("buffer", ANY, "LockBufferForCleanup"),
	LOCK("spinlock", SLEEP, "s_lock"),
	LOCK("spinlock", SLEEP, "perform_spin_delay"),
	LOCK("metadata", ANY, "MDL_context::acquire_lock*"),
	LOCK("transaction", ANY, "lock_wait"),
	LOCK("transaction", ANY, "lock_wait_suspend_thread*"),
	LOCK("mutex", ANY, "TTASEventMutex*::enter*"),
	LOCK("mutex", ANY, "PolicyMutex*::enter*"),
	LOCK("mutex", ANY, "sync_array_wait_event*"),
	LOCK("rwlock", ANY, "rw_lock_*_lock_*"),
	LOCK("rwlock", FUTEX, "*s*x_lock_impl*::*wait*"),
	LOCK("rwlock", FUTEX, "*srw_lock*::*wait*"),
	LOCK("rwlock", FUTEX, "*srw_mutex_impl*::wait*"),
	/* of the kernel: */
	LOCK("kernel", KMUTEX, NULL),
	LOCK("kernel", KRWSEM, NULL),
	LOCK("journal", JOURNAL, NULL),
	LOCK("file", FILELOCK, NULL),

	/* 3. Idle. Pools and queues of Java, the threads of its machine: */
	IDLE("worker", ANY, "java.util.concurrent.ThreadPoolExecutor.getTask"),
	IDLE("worker", ANY, "java.util.concurrent.ForkJoinPool.awaitWork"),
	IDLE("worker", ANY, "@*park* < java.util.concurrent.ForkJoinPool.runWorker"),
	IDLE("timer", ANY, "@java.lang.Object.wait* < java.util.TimerThread.mainLoop"),
	IDLE("timer", ANY,
	     "@java.lang.Object.wait* < java.lang.Object.wait < java.util.TimerThread.mainLoop"),
	IDLE("worker", ANY,
	     "java.lang.ref.ReferenceQueue.remove* < java.lang.ref.Finalizer$FinalizerThread.run"),
	IDLE("worker", ANY, "java.lang.ref.ReferenceQueue.remove* < *CleanerImpl.run"),
	IDLE("worker", ANY, "JVM_WaitForReferencePendingList"),
	IDLE("worker", ANY, "PosixSemaphore::wait < GangWorker::*"),
	IDLE("worker", ANY, "PosixSemaphore::wait < *Gang*Dispatcher::worker_wait_for_task*"),
	IDLE("worker", ANY, "PosixSemaphore::wait < WorkerThread::*"),
	IDLE("worker", ANY, "PosixSemaphore::wait < WorkerTaskDispatcher::*"),
	IDLE("worker", ANY, "PosixSemaphore::wait < *Thread::run_service"),
	IDLE("worker", ANY, "PosixSemaphore::wait < *RefineThread::wait_for_completed_buffers"),
	IDLE("worker", ANY, "Monitor::wait* < *Thread::run_service"),
	IDLE("worker", ANY, "Monitor::wait* < *RefineThread::wait_for_*"),
	IDLE("worker", ANY, "Monitor::wait* < G1*Thread::wait_for_*"),
	IDLE("worker", ANY, "Monitor::wait* < G1ServiceThread::*"),
	IDLE("worker", ANY, "Monitor::wait* < ServiceThread::service_thread_entry"),
	IDLE("worker", ANY, "Monitor::wait* < NotificationThread::notification_thread_entry"),
	IDLE("worker", ANY, "Monitor::wait* < MonitorDeflationThread::*"),
	IDLE("worker", ANY, "Monitor::wait* < NMethodSweeper::sweeper_loop"),
	IDLE("worker", ANY, "Monitor::wait* < StringDedup*"),
	IDLE("worker", ANY, "Monitor::wait* < CompileQueue::get"),
	IDLE("timer", ANY, "Monitor::wait* < WatcherThread::sleep"),
	IDLE("worker", ANY, "Monitor::wait* < VMThread::loop"),
	IDLE("worker", ANY, "Monitor::wait* < VMThread::wait_for_*op*"),
	IDLE("worker", ANY, "Monitor::wait* < VMThread::run"),
	IDLE("signal", ANY, "PosixSemaphore::wait < os::signal_wait"),
	IDLE("signal", ANY, "*os::signal_wait"),
	IDLE("accept", ANY, "java.net.ServerSocket.*ccept*"),
	IDLE("accept", ANY, "sun.nio.ch.ServerSocketChannelImpl.*ccept*"),
	IDLE("poll", POLL, "sun.nio.ch.*SelectorImpl.doSelect"),
	/* Its first thread has nothing to do but to wait for the one that runs main(). */
	IDLE("launcher", FUTEX, "*pthread_*join* < CallJavaMainInNewThread"),
	IDLE("launcher", FUTEX, "*pthread_*join* < ContinueInNewThread*"),
	/* Python's pools, and loops of servers: */
	LOCK("mutex", FUTEX | UNKNOWN, "lock_PyThread_acquire_lock* < _worker"),
	LOCK("mutex", FUTEX | UNKNOWN, "rlock_acquire* < _worker"),
	IDLE("worker", FUTEX | UNKNOWN, "@_worker < Thread.run"),
	IDLE("worker", ANY, "@Queue.get < worker < Thread.run"),
	IDLE("worker", ANY, "@Condition.wait < Queue.get < _worker < Thread.run"),
	IDLE("worker", ANY, "@*.__enter__ < SimpleQueue.get < worker < BaseProcess.run"),
	IDLE("worker", ANY, "@SimpleQueue.get < worker < BaseProcess.run"),
	IDLE("worker", ANY,
	     "@Connection._recv < Connection._recv_bytes < *.recv_bytes < SimpleQueue.get < worker"),
	IDLE("worker", ANY, "@*.__enter__ < Queue.get < _process_worker < BaseProcess.run"),
	IDLE("worker", ANY, "@Queue.get < _process_worker < BaseProcess.run"),
	IDLE("worker", ANY, "@Connection._recv < * < * < Queue.get < _process_worker"),
	IDLE("worker", FUTEX | UNKNOWN, "@Pool._handle_tasks < Thread.run"),
	IDLE("worker", RECEIVE,
	     "@Connection._recv < Connection._recv_bytes < *.recv_bytes < Pool._handle_results"),
	IDLE("poll", POLL, "@*.select < wait < Pool._wait_for_updates"),
	IDLE("worker", ANY, "@Condition.wait < Queue._feed < Thread.run"),
	IDLE("worker", ANY, "@Queue._feed < Thread.run"),
	IDLE("worker", ANY,
	     "@Condition.wait < Queue.get < QueueListener.dequeue < QueueListener._monitor"),
	IDLE("poll", ANY, "@*.select < BaseEventLoop._run_once"),
	IDLE("poll", ANY, "@*.select < BaseServer.serve_forever"),
	IDLE("poll", ANY, "@*.select < wait < _ExecutorManagerThread.wait_result_broken_or_wakeup"),
	/* Go: a thread looks for a goroutine that can run. What goroutines wait for is not its
	 * wait. */
	IDLE("epoll", EPOLL, "runtime.netpoll*"),
	IDLE("timer", SLEEP, "runtime.usleep* < runtime.sysmon*"),
	IDLE("timer", FUTEX, "runtime.note*sleep* < runtime.sysmon*"),
	IDLE("signal", FUTEX, "runtime.note*sleep* < os/signal.signal_recv*"),
	IDLE("scheduler", FUTEX, "runtime.mPark* < runtime.stopm*"),
	IDLE("scheduler", FUTEX, "runtime.mPark* < runtime.stoplockedm*"),
	IDLE("scheduler", FUTEX, "runtime.notesleep* < runtime.stopm*"),
	IDLE("scheduler", FUTEX, "runtime.notesleep* < runtime.stoplockedm*"),
	IDLE("scheduler", FUTEX, "runtime.notesleep* < runtime.templateThread*"),
	/* Node.js, libuv, V8: */
	IDLE("worker", FUTEX, "uv_cond_wait < worker"),
	IDLE("worker", FUTEX, "*TaskQueue<*::BlockingPop"),
	IDLE("worker", FUTEX, "*TaskQueue*::BlockingPop*"),
	IDLE("worker", FUTEX, "uv_cond_*wait < *::PlatformWorkerThread*"),
	IDLE("worker", FUTEX, "uv_cond_*wait < *::DelayedTaskScheduler*"),
	IDLE("worker", FUTEX, "v8::platform::DefaultWorkerThreadsTaskRunner::*GetNext"),
	IDLE("worker", FUTEX, "*sem_wait* < node::inspector::*StartIoThreadMain"),
	IDLE("worker", FUTEX, "*sem_wait* < *StartIoThreadMain"),
	IDLE("signal", FUTEX, "uv_sem_wait < *StartIoThreadMain*"),
	IDLE("poll", POLL | URING, "uv__io_poll"),
	/* Ruby: threads that it keeps for later, its timer */
	IDLE("timer", ANY, "timer_thread_*"),
	IDLE("worker", FUTEX, "*cond_timedwait < register_cached_thread_and_wait"),
	/* PostgreSQL: waits for a client's next command, loops of background workers */
	IDLE("client", EPOLL | POLL, "secure_read"),
	IDLE("client", EPOLL | POLL, "pq_recvbuf"),
	IDLE("accept", EPOLL | POLL, "ServerLoop"),
	IDLE("accept", EPOLL | POLL, "WaitEventSetWait < PostmasterMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < BackgroundWriterMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < CheckpointerMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < WalWriterMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < * < StartAutoVacLauncher"),
	IDLE("accept", EPOLL | POLL, "*select < * < PostmasterMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < AutoVacLauncherMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < ApplyLauncherMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < PgArchiverMain*"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < pgarch_MainLoop"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < IoWorkerMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatch < WalSummarizerMain"),
	IDLE("worker", EPOLL | POLL, "WaitLatchOrSocket < WalReceiverMain"),
	IDLE("worker", EPOLL | POLL, "WalSndWait"),
	IDLE("worker", EPOLL | POLL, "WaitEventSetWait < SysLoggerMain"),
	/* MySQL and MariaDB: */
	IDLE("client", POLL | RECEIVE, "*net_read_packet*"),
	IDLE("client", POLL | RECEIVE, "my_net_read*"),
	IDLE("accept", POLL, "*handle_connections_*"),
	IDLE("worker", FUTEX, "*cond_*wait* < io_handler_thread"),
	IDLE("worker", FUTEX, "*cond_*wait* < buf_flush_page_cleaner*"),
	IDLE("worker", FUTEX, "*tpool::*::get_task*"),
	IDLE("worker", FUTEX, "*cond_*wait* < timer_handler"),
	/* servers in C: */
	IDLE("worker", FUTEX, "*cond_*wait* < bioProcessBackgroundJobs"),
	IDLE("worker", FUTEX, "*cond_*wait* < background_thread_entry"),
	IDLE("worker", FUTEX, "*cond_*wait* < *background_work_sleep*"),
	IDLE("poll", POLL, "aeApiPoll"),
	IDLE("poll", POLL, "aeProcessEvents"),
	IDLE("worker", FUTEX, "*cond_*wait* < assoc_maintenance_thread"),
	IDLE("worker", FUTEX, "*cond_*wait* < item_crawler_thread"),
	IDLE("worker", FUTEX, "*cond_*wait* < slab_rebalance_thread"),
	IDLE("timer", SLEEP, "*sleep* < lru_maintainer_thread"),
	IDLE("timer", SLEEP, "*sleep* < logger_thread"),
	IDLE("worker", FUTEX, "*cond_*wait* < logger_thread"),
	IDLE("worker", FUTEX, "*cond_*wait* < ngx_thread_pool_cycle"),
	IDLE("signal", SUSPEND, "ngx_master_process_cycle"),
	IDLE("poll", POLL, "ngx_*_process_events"),
	IDLE("poll", POLL, "event_base_loop"),
	IDLE("poll", POLL, "ev_run"),
	IDLE("poll", POLL, "g_main_context_*"),
	IDLE("poll", POLL, "g_main_loop_run"),
	IDLE("worker", ANY, "g_thread_pool_wait_for_new_task*"),
	IDLE("worker", ANY, "g_async_queue_* < g_thread_pool_thread_proxy"),
	IDLE("poll", POLL, "avahi_simple_poll_*"),
	IDLE("poll", POLL, "pa_mainloop_poll"),
	IDLE("poll", POLL, "os_host_main_loop_wait"),
	IDLE("poll", POLL, "server_accept_loop"),
	IDLE("poll", POLL, "WaitForSomething"),
	IDLE("poll", POLL, "sd_event_wait"),
	IDLE("scheduler", ANY, "scheduler_wait"),
	IDLE("poll", POLL, "erts_poll_wait*"),
	/* pools of Rust and of OpenMP: */
	IDLE("worker", FUTEX, "rayon_core::sleep::Sleep::sleep*"),
	IDLE("worker", FUTEX, "tokio::runtime::*::park::*"),
	IDLE("worker", FUTEX, "*ondvar::wait* < tokio::runtime::blocking::pool::*"),
	IDLE("worker", FUTEX, "gomp_*barrier_wait* < gomp_thread_start"),
	IDLE("worker", FUTEX, "__kmp_suspend_* < *__kmp_fork_barrier*"),
	/* functions that say in their own name that they wait for work */
	IDLE("worker", FUTEX, "*wait_for_work"),
	IDLE("worker", FUTEX, "*wait_for_task"),
	IDLE("worker", FUTEX, "*wait_for_job"),
	IDLE("worker", FUTEX, "*aitForWork"),
	IDLE("worker", FUTEX, "*aitForTask"),
	IDLE("worker", FUTEX, "*aitForJob"),

	/*
	 * 4. Neither idle nor a lock, although the rules below would match: Python builds its
	 * condition variables from locks, so a wait for a condition looks like a wait for a lock.
	 */
	LOCK("semaphore", FUTEX | UNKNOWN, "@Condition.wait < Semaphore.acquire"),
	LOCK("semaphore", FUTEX | UNKNOWN, "@Condition.wait < Semaphore.__enter__"),
	PLAIN(FUTEX | UNKNOWN, "@Condition.wait"),
	PLAIN(FUTEX | UNKNOWN, "@Thread._wait_for_tstate_lock"),
	PLAIN(FUTEX | UNKNOWN, "@Thread.join"),
	PLAIN(FUTEX | UNKNOWN, "@Thread.start"),
	PLAIN(FUTEX | UNKNOWN, "*SimpleQueue_get*"),
	PLAIN(FUTEX | UNKNOWN, "wait_for_thread_shutdown"),
	/* and waits for an answer by way of epoll. */
	PLAIN(EPOLL, "WaitEventSetWait*"),
	PLAIN(EPOLL, "WaitLatch*"),
	PLAIN(FUTEX | UNKNOWN, "*pthread_cond_*wait*"),
	PLAIN(FUTEX | UNKNOWN, "*cnd_*wait"),
	PLAIN(FUTEX | UNKNOWN, "*pthread_*join*"),
	PLAIN(FUTEX | UNKNOWN, "*pthread_barrier_wait*"),
	PLAIN(FUTEX | UNKNOWN, "*pthread_once*"),
	PLAIN(FUTEX | UNKNOWN, "__cxa_guard_acquire"),
	PLAIN(FUTEX | UNKNOWN, "uv_sem_wait"),
	PLAIN(FUTEX | UNKNOWN, "PosixSemaphore::*"),

	/* 5. Locks, because no caller said otherwise. */
	LOCK("mutex", FUTEX | UNKNOWN, "lock_PyThread_acquire_lock*"),
	LOCK("mutex", FUTEX | UNKNOWN, "rlock_acquire*"),
	LOCK("mutex", FUTEX | UNKNOWN, "acquire_timed"),
	LOCK("mutex", FUTEX | UNKNOWN, "PyThread_acquire_lock*"),
	LOCK("mutex", FUTEX | UNKNOWN, "_multiprocessing_SemLock_acquire*"),
	LOCK("semaphore", FUTEX | UNKNOWN, "*sem_*wait*"),
	/* Where a C library has no names of its own, sem_wait() jumps to one of these and is not
	 * seen. */
	LOCK("semaphore", FUTEX, "[libc.so.6+*"),
	LOCK("semaphore", SYSVSEM, NULL),

	/* 6. Idle by the system call, or by the kernel thread's own loop. */
	IDLE("epoll", EPOLL, NULL),
	IDLE("accept", ACCEPT, NULL),
	IDLE("signal", SIGNAL, NULL),
	IDLE("worker", KTHREAD, NULL),
};

static const char *end_of(const char *frames)
{
	const char *end = strstr(frames, " < ");

	return end ? end : frames + strlen(frames);
}

/* The frames of @wait that a chain is matched with: all, or those of the interpreted language. */
static size_t next_of(const struct sb_wait *wait, size_t i, bool only_interp)
{
	while (i < wait->nr_user && only_interp && !wait->user[i].is_interp)
		i++;
	return i;
}

/* Whether the chain begins at frame @i. */
static bool fits_at(const char *frames, const struct sb_wait *wait, size_t i, bool only_interp)
{
	const char *end;

	for (;; frames = end + strlen(" < "), i = next_of(wait, i + 1, only_interp)) {
		end = end_of(frames);
		if (i >= wait->nr_user || i >= SB_WAIT_FRAMES_MAX ||
		    !sb_glob_matches(frames, (size_t)(end - frames), wait->user[i].name))
			return false;
		if (!*end)
			return true;
	}
}

static bool fits(const char *frames, const struct sb_wait *wait)
{
	size_t i;

	if (*frames == '@')
		return fits_at(frames + 1, wait, next_of(wait, 0, true), true);
	for (i = 0; i < wait->nr_user && i < SB_WAIT_FRAMES_MAX; i++)
		if (wait->user[i].is_word && fits_at(frames, wait, i, false))
			return true;
	return false;
}

static uint32_t call_of(const char *kernel)
{
	size_t i;

	if (!kernel)
		return UNKNOWN;
	for (i = 0; i < SB_ARRAY_SIZE(calls); i++)
		if (sb_glob_matches(calls[i].function, strlen(calls[i].function), kernel))
			return calls[i].call;
	return OTHER;
}

bool sb_waits_is_word(const char *name)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rules); i++) {
		const char *frames = rules[i].frames;

		if (!frames)
			continue;
		frames += *frames == '@';
		if (sb_glob_matches(frames, (size_t)(end_of(frames) - frames), name))
			return true;
	}
	return false;
}

enum { WORD_UNKNOWN, WORD_NO, WORD_YES };

bool sb_wait_words_has(struct sb_wait_words *words, uint32_t frame, const char *name)
{
	if (sb_vec_fit(&words->at, (size_t)frame + 1, WORD_UNKNOWN))
		return sb_waits_is_word(name); /* there is no memory to remember it */
	if (words->at.at[frame] == WORD_UNKNOWN)
		words->at.at[frame] = sb_waits_is_word(name) ? WORD_YES : WORD_NO;
	return words->at.at[frame] == WORD_YES;
}

void sb_wait_words_clear(struct sb_wait_words *words)
{
	sb_vec_release(&words->at);
}

struct sb_wait_reason sb_waits_reason(const struct sb_wait *wait)
{
	const uint32_t call = call_of(wait->kernel);
	bool has_words = false;
	size_t i;

	for (i = 0; i < wait->nr_user && i < SB_WAIT_FRAMES_MAX; i++)
		has_words |= wait->user[i].is_word;
	for (i = 0; i < SB_ARRAY_SIZE(rules); i++) {
		const struct rule *rule = &rules[i];

		if (!(rule->calls & call) || (rule->frames && !has_words))
			continue;
		if (!rule->frames || fits(rule->frames, wait))
			return (struct sb_wait_reason){ .class = rule->class, .kind = rule->kind };
	}
	return (struct sb_wait_reason){ .class = SB_WAIT_PLAIN };
}
