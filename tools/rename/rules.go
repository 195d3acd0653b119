package main

// A form says how to rewrite a use of the old API. In the examples x is the receiver.
type form int

const (
	queued      form = iota // x.M(order, args...)  -> x.Submit(order, gpu.Op(args...))
	done                    // x.M(args...)         -> x.Do(gpu.Op(args...))
	recorded                // x.M(args, after...)  -> x.Add(gpu.Op(args), after...)
	moved                   // x.M(stream, args...) -> stream.Do(x.Op(args...)); likewise with a queue or a command buffer
	alloc                   // b, err := x.M(order, args...) -> var b *gpu.Buffer; err := x.Submit(order, gpu.Op(&b, args...))
	renamed                 // M                    -> Op
	function                // x.M(args...)         -> Op(x, args...)
	withContext             // x.M(ctx, args...)    -> Op(ctx, x, args...)
	grouped                 // x.M(ctx, order, args...) -> x.Device().Queue(0).Submit(order, x.Op(ctx, args...))
	freed                   // x.M(order)           -> x.Device().Queue(0).Submit(order, gpu.Op(x))
	byHand                  // there is no replacement: a person must rewrite it
)

// A rule says how to rewrite one name of the old API. A name of another package than gpu has the
// package before it: "interop.Event".
type rule struct {
	form
	op string
}

// rules lists all changed names: methods as Type.Method; types, functions and constants by their
// names.
var rules = map[string]rule{
	"Queue.Alloca":      {alloc, "Alloc"},
	"Queue.Barrier":     {queued, "Barrier"},
	"Queue.Copy":        {queued, "Copy"},
	"Queue.Dealloca":    {queued, "Free"},
	"Queue.Dispatch":    {queued, "Dispatched"},
	"Queue.Download":    {queued, "Download"},
	"Queue.Execute":     {queued, "Execute"},
	"Queue.ExecuteAll":  {byHand, ""},
	"Queue.Fill":        {queued, "Fill"},
	"Queue.HostCall":    {queued, "HostCall"},
	"Queue.Native":      {queued, "Native"},
	"Queue.Notify":      {queued, "Notify"},
	"Queue.Prefetch":    {queued, "Prefetch"},
	"Queue.Read":        {queued, "ReadFrom"},
	"Queue.RecordEvent": {queued, "interop.RecordEvent"},
	"Queue.Upload":      {queued, "Upload"},
	"Queue.UploadCopy":  {queued, "UploadCopy"},
	"Queue.WaitEvent":   {queued, "interop.WaitEvent"},
	"Queue.WaitValue":   {queued, "interop.WaitValue"},
	"Queue.Write":       {queued, "WriteTo"},
	"Queue.WriteValue":  {queued, "interop.WriteValue"},

	"Stream.Alloca":      {renamed, "Alloc"},
	"Stream.Barrier":     {done, "Barrier"},
	"Stream.Dealloca":    {renamed, "Free"},
	"Stream.Dispatch":    {done, "Dispatched"},
	"Stream.Execute":     {done, "Execute"},
	"Stream.ExecuteAll":  {byHand, ""},
	"Stream.HostCall":    {done, "HostCall"},
	"Stream.Native":      {done, "Native"},
	"Stream.Notify":      {done, "Notify"},
	"Stream.Prefetch":    {done, "Prefetch"},
	"Stream.Read":        {done, "ReadFrom"},
	"Stream.RecordEvent": {done, "interop.RecordEvent"},
	"Stream.Submit":      {byHand, ""},
	"Stream.UploadCopy":  {done, "UploadCopy"},
	"Stream.WaitEvent":   {done, "interop.WaitEvent"},
	"Stream.WaitValue":   {done, "interop.WaitValue"},
	"Stream.Write":       {done, "WriteTo"},
	"Stream.WriteValue":  {done, "interop.WriteValue"},

	"CommandBuffer.Alloca":     {renamed, "Scratch"},
	"CommandBuffer.Barrier":    {recorded, "Barrier"},
	"CommandBuffer.Copy":       {recorded, "Copy"},
	"CommandBuffer.Dispatch":   {recorded, "Dispatched"},
	"CommandBuffer.Execute":    {recorded, "Execute"},
	"CommandBuffer.Fill":       {recorded, "Fill"},
	"CommandBuffer.HostCall":   {recorded, "HostCall"},
	"CommandBuffer.Native":     {recorded, "Native"},
	"CommandBuffer.Nest":       {recorded, "Execute"},
	"CommandBuffer.UploadCopy": {recorded, "UploadCopy"},
	"CommandBuffer.WaitValue":  {recorded, "interop.WaitValue"},
	"CommandBuffer.WriteValue": {recorded, "interop.WriteValue"},

	"Slice.CopyFrom":   {moved, "CopyFrom"},
	"Slice.Dealloca":   {moved, "Free"},
	"Slice.Download":   {moved, "Download"},
	"Slice.Fill":       {moved, "Fill"},
	"Slice.Upload":     {moved, "Upload"},
	"Slice.UploadCopy": {moved, "UploadCopy"},

	// Generated kernels have these methods too.
	"TypedKernel.Dispatch": {moved, "Launch"},
	"TypedKernel.Launch":   {moved, "Launch"},
	"TypedKernel.Record":   {moved, "Launch"},

	"AllocaSlice":     {renamed, "AllocSliceIn"},
	"Buffer.Dealloca": {freed, "Free"},
	"Executable":      {renamed, "Module"},
	"Native":          {renamed, "NativeCall"},

	"Group.Parked":    {byHand, ""},
	"Group.Pick":      {byHand, ""},
	"Group.PickAfter": {byHand, ""},
	"Group.Queue":     {byHand, ""},
	"Group.Queues":    {byHand, ""},
	"Pool.ResetHigh":  {byHand, ""},
	"Pool.Threshold":  {byHand, ""},

	"Buffer.Export":            {function, "interop.ExportMemory"},
	"Buffer.ExportFile":        {function, "interop.ExportMemoryFile"},
	"Device.AdoptEvent":        {function, "interop.AdoptEvent"},
	"Device.AdoptQueue":        {function, "interop.AdoptStream"},
	"Device.Import":            {function, "interop.ImportPointer"},
	"Device.ImportPool":        {function, "interop.ImportPool"},
	"Device.ImportShared":      {function, "interop.ImportMemory"},
	"Device.ImportSharedEvent": {function, "interop.ImportEvent"},
	"Device.ImportSharedFile":  {function, "interop.ImportMemoryFile"},
	"Device.NewEvent":          {function, "interop.NewEvent"},
	"Device.NewSharedEvent":    {function, "interop.NewSharedEvent"},
	"EventHandle":              {renamed, "interop.EventHandle"},
	"ImportedPool":             {renamed, "interop.Pool"},
	"MemoryHandle":             {renamed, "interop.MemoryHandle"},
	"Pool.Export":              {function, "interop.ExportPool"},
	"RecordEvent":              {renamed, "interop.RecordEvent"},
	"SharedEvent":              {renamed, "interop.Event"},
	"WaitEvent":                {renamed, "interop.WaitEvent"},
	"WaitValue":                {renamed, "interop.WaitValue"},
	"WriteValue":               {renamed, "interop.WriteValue"},

	"AllGather":           {renamed, "collective.AllGather"},
	"AllReduce":           {renamed, "collective.AllReduce"},
	"AllToAll":            {renamed, "collective.AllToAll"},
	"Avg":                 {renamed, "collective.Avg"},
	"BFloat16":            {renamed, "collective.BFloat16"},
	"Broadcast":           {renamed, "collective.Broadcast"},
	"Channel":             {renamed, "collective.Communicator"},
	"Channel.Submit":      {grouped, "GroupContext"},
	"ChannelError":        {renamed, "collective.Error"},
	"ChannelID":           {renamed, "collective.ID"},
	"ChannelMemory":       {renamed, "collective.Memory"},
	"ChannelOptions":      {renamed, "collective.Options"},
	"ChannelStats":        {renamed, "collective.Stats"},
	"Collective":          {renamed, "collective.Operation"},
	"Device.NewChannel":   {withContext, "collective.New"},
	"Device.NewChannelID": {function, "collective.NewID"},
	"ElementType":         {renamed, "collective.ElementType"},
	"ErrAborted":          {renamed, "collective.ErrAborted"},
	"ErrSuspended":        {renamed, "collective.ErrSuspended"},
	"Float16":             {renamed, "collective.Float16"},
	"Float32":             {renamed, "collective.Float32"},
	"Float64":             {renamed, "collective.Float64"},
	"Float8E4M3":          {renamed, "collective.Float8E4M3"},
	"Float8E5M2":          {renamed, "collective.Float8E5M2"},
	"Gather":              {renamed, "collective.Gather"},
	"Group.NewChannels":   {withContext, "collective.NewAll"}, // with the devices of the group
	"Int16":               {renamed, "collective.Int16"},
	"Int32":               {renamed, "collective.Int32"},
	"Int64":               {renamed, "collective.Int64"},
	"Int8":                {renamed, "collective.Int8"},
	"Max":                 {renamed, "collective.Max"},
	"Min":                 {renamed, "collective.Min"},
	"NoColor":             {renamed, "collective.NoColor"},
	"ParseChannelID":      {renamed, "collective.ParseID"},
	"PreMulSum":           {renamed, "collective.PreMulSum"},
	"Prod":                {renamed, "collective.Prod"},
	"Receive":             {renamed, "collective.Receive"},
	"Reduce":              {renamed, "collective.Reduce"},
	"ReduceScatter":       {renamed, "collective.ReduceScatter"},
	"Reduction":           {renamed, "collective.Reduction"},
	"Rendezvous":          {renamed, "collective.Rendezvous"},
	"Scatter":             {renamed, "collective.Scatter"},
	"Send":                {renamed, "collective.Send"},
	"SendReceive":         {renamed, "collective.SendReceive"},
	"Sum":                 {renamed, "collective.Sum"},
	"Uint16":              {renamed, "collective.Uint16"},
	"Uint32":              {renamed, "collective.Uint32"},
	"Uint64":              {renamed, "collective.Uint64"},
	"Uint8":               {renamed, "collective.Uint8"},
}

// fields lists the removed fields, by struct. A person must rewrite their uses, except Label and
// Timing in a literal of an Order that is an argument of a rewritten call.
var fields = map[string][]string{
	"Order": {"Label", "Timing"},
	"Grid":  {"Begun"},
	"Stats": {"Bytes"},
}

// testkitAlloc is the function of package testkit that replaces Queue.Alloca. The queue is its
// first argument. The runtime's own tests call it.
const testkitAlloc = "AllocIn"

// through has, for each type, the name of the method that takes an Op.
var through = map[string]string{"Queue": "Submit", "Stream": "Do", "CommandBuffer": "Add"}

// links lists the doc links that do not follow the rules, with their new text, or "" if a person
// must decide.
var links = map[string]string{
	"Channel.Submit":         "collective.Communicator.GroupContext",
	"CommandBuffer.Dispatch": "",
	"Native":                 "", // a type before, and now a function
	"Order.Label":            "",
	"Order.Timing":           "",
	"Queue.Dispatch":         "",
	"Stream.Alloca":          "Alloc",
	"Stream.Dealloca":        "Free",
	"Stream.Dispatch":        "",
}
